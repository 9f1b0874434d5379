/*
 * test_metrics.h - the metrics that evaluations of a run are compared by: one row each, for options.keep_best.
 */
#ifndef LS_EVALUATION_TEST_METRICS_H
#define LS_EVALUATION_TEST_METRICS_H

#include <lockstep/train.h>

#include "evaluation/class_tally.h"
#include "graph/graph.h"

typedef struct ls_test_metric {
	const char *name, *summary; /* "loss"; a line of help */
	const char *title;          /* in messages: "test loss" */
	int is_lower_better;
	int counts_classes; /* it follows from a tally */
	int (*fits)(const ls_graph *graph);
	const char *of; /* the models that it fits, "language models"; NULL: all */
	double (*value)(const ls_eval_result *result, const ls_class_tally *tally);
} ls_test_metric;

const ls_test_metric *ls_test_metric_at(size_t i); /* NULL past the end */

/* That the name stands for, if the model has it. */
ls_status ls_test_metric_find(const char *name, const ls_graph *graph, const ls_test_metric **out);

#endif
