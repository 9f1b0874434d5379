/*
 * family.h - what a file of models provides: rows for the table.
 */
#ifndef LS_MODELS_FAMILY_H
#define LS_MODELS_FAMILY_H

#include <stdio.h>

#include <lockstep/models.h>

typedef struct ls_model_kind {
	ls_model_row row;
	/* Add the layers and finish the graph. */
	ls_status (*build)(ls_graph *graph, const ls_model_options *options);
} ls_model_kind;

ls_status ls_model_mlp(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_cnn(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet18(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet34(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet50(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet101(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet152(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_resnet18_cifar(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_vit_tiny(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_vit_small(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_vit_base(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_transformer(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_tiny(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_mini(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_small(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_medium(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_base(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_bert_large(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt_nano(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt_micro(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt_mini(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt_small(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt2(ls_graph *graph, const ls_model_options *options);
ls_status ls_model_gpt2_medium(ls_graph *graph, const ls_model_options *options);

/* "<prefix>.<suffix>"; layer names are short. */
typedef struct ls_layer_name {
	char text[96];
} ls_layer_name;

static inline ls_layer_name ls_named(const char *prefix, const char *suffix)
{
	ls_layer_name name;
	snprintf(name.text, sizeof(name.text), "%s.%s", prefix, suffix);
	return name;
}

/* A linear layer as models of text start it: weights from N(0, 0.02), bias from 0. */
static inline ls_value ls_text_linear(ls_graph *g, ls_value x, ls_layer_name name, int out)
{
	return ls_linear(g, x, name.text, (ls_linear_options){ .out_features = out, .init = LS_WEIGHTS_NORMAL });
}

#endif
