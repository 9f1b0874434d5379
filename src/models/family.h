/*
 * family.h - what a file of models provides: rows for the table.
 */
#ifndef LS_MODELS_FAMILY_H
#define LS_MODELS_FAMILY_H

#include <lockstep/models.h>

typedef struct ls_model_kind {
	ls_model_row row;
	/* Add the layers; returns the logits. Mistakes are kept by the graph. */
	ls_value (*build)(ls_graph *graph, const ls_model_options *options);
} ls_model_kind;

ls_value ls_model_mlp(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_cnn(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_resnet18(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_resnet34(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_resnet50(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_resnet101(ls_graph *graph, const ls_model_options *options);
ls_value ls_model_resnet152(ls_graph *graph, const ls_model_options *options);

#endif
