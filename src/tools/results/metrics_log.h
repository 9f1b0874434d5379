/*
 * metrics_log.h - the course of a run, as metrics.jsonl has it: a line for each step that was logged, epoch and test.
 */
#ifndef LS_TOOLS_RESULTS_METRICS_LOG_H
#define LS_TOOLS_RESULTS_METRICS_LOG_H

#include <jansson.h>

#include "tools/results/results.h"

typedef struct ls_metrics_line {
	char kind[16];       /* "step", "epoch", "test", "checkpoint", "end", or what a later version adds */
	int64_t step, epoch; /* epoch: of epochs and tests */
	double loss, accuracy, seconds, samples_per_s, tokens_per_s, wait_s, exposed_s; /* NaN: it has none */
	char fingerprint[LS_RESULTS_NAME]; /* of checkpoints and ends; "": it has none */
} ls_metrics_line;

/* `object` is the whole line. */
typedef ls_status ls_metrics_line_fn(void *context, const ls_metrics_line *line, const json_t *object);

/* Every line of a text. A last one without an end is being written, or was torn by a crash: a resume drops it, and so
 * does this. `label` names the text in errors, which add the line and the field. */
ls_status ls_metrics_log_read(const char *text, size_t bytes, const char *label, ls_metrics_line_fn *take,
			      void *context);

/* Rows of a point, whose lists were begun by these calls: one rate more; and an epoch's time or test, which are two
 * lines. */
ls_status ls_point_add_rate(ls_point *point, ls_point_rate rate);
ls_status ls_point_add_epoch(ls_point *point, const ls_metrics_line *line);

/* What the run ended with, from a line of that kind; the last one counts. */
void ls_point_end(ls_point *point, const ls_metrics_line *line);

#endif
