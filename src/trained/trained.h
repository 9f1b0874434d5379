/*
 * trained.h - a model that was trained: its weights found, its graph built for samples of a shape, the weights in it.
 * What eval, predict and export begin with.
 */
#ifndef LS_TRAINED_TRAINED_H
#define LS_TRAINED_TRAINED_H

#include <lockstep/train.h>

#include "graph/graph.h"
#include "settings/settings.h"
#include "trained/weights.h"

typedef struct ls_trained {
	ls_weights weights;
	ls_settings_stored stored;      /* what the run or the file says */
	ls_train_options settings;      /* the same with the options on top */
	int is_data_given;              /* settings.data is what the program asks for */
	int classes;                    /* of the weights; 0: not known */
	ls_normalisation normalisation; /* that they were trained with; zero: not known */
	char *columns;                  /* of the table that they were trained on; NULL: none */
	ls_task task;                   /* that they were trained for */
	ls_weights_said said;
	char vocab[4096]; /* the run's copy; "": none */
	ls_graph *own_graph;
	const ls_graph *graph;
	float *params, *buffers; /* of the graph */
} ls_trained;

/* Where the weights are, what they are of and how large the model is. Of the options: source, model, graph and those of
 * text; of the data, settings has what the run was trained on. */
ls_status ls_trained_find(ls_trained *out, const ls_eval_options *options);

/* The shape of a sample: `input` ("3x224x224") or, where it is NULL, what the file says, or else that of the data that
 * settings name, which is opened for it. */
ls_status ls_trained_find_shape(const ls_trained *trained, const char *input, ls_dataset_info *out);

/* The graph for samples like `info`'s, or the program's own, and the weights. */
ls_status ls_trained_load(ls_trained *trained, const ls_dataset_info *info);

void ls_trained_release(ls_trained *trained); /* harmless when it is zero */

#endif
