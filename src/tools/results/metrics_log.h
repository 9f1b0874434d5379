/*
 * metrics_log.h - metrics.jsonl of a run: one line per logged step, epoch and test.
 */
#ifndef LS_TOOLS_RESULTS_METRICS_LOG_H
#define LS_TOOLS_RESULTS_METRICS_LOG_H

#include <jansson.h>

#include "tools/results/results.h"

typedef struct ls_metrics_line {
	char kind[16];       /* "step", "epoch", "test", "checkpoint", "end", or what a later version adds */
	int64_t step, epoch; /* epoch: of epochs and tests */
	double loss, accuracy, seconds, samples_per_s, tokens_per_s, wait_s, exposed_s; /* NaN: not in the line */
	char fingerprint[LS_RESULTS_NAME]; /* of checkpoints and ends; "": not in the line */
} ls_metrics_line;

/* `object` is the whole line. */
typedef ls_status ls_metrics_line_fn(void *context, const ls_metrics_line *line, const json_t *object);

/* Read every line of a text. A last line without a line break is incomplete, because it is being written or after a
 * crash: it is ignored, as a resume does. `label` names the text in errors, which add the line and the field. */
ls_status ls_metrics_log_read(const char *text, size_t bytes, const char *label, ls_metrics_line_fn *take,
			      void *context);

/* Append a rate to the point; and the time or the test of an epoch, which are two lines. */
ls_status ls_point_add_rate(ls_point *point, ls_point_rate rate);
ls_status ls_point_add_epoch(ls_point *point, const ls_metrics_line *line);

/* Store the last step and fingerprint from a line of kind "end"; the last one counts. */
void ls_point_end(ls_point *point, const ls_metrics_line *line);

#endif
