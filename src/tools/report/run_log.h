/*
 * run_log.h - how the training of a run went, from RUN/metrics.jsonl: learning rate by step, loss and
 * accuracy of epochs and of tests, which test was the best, where the run was stopped early, which nodes took
 * part when; and RUN/eval.json.
 */
#ifndef LS_TOOLS_REPORT_RUN_LOG_H
#define LS_TOOLS_REPORT_RUN_LOG_H

#include "tools/report/class_metrics.h"
#include "tools/results/memberships.h"
#include "tools/results/metrics_log.h"

typedef struct ls_run_row {
	int64_t step, epoch;                                /* steps done; the epoch, from 0 */
	double loss, accuracy, perplexity, f1, mae, r2, lr; /* NaN: not in the line */
	int is_best;                                        /* of a test: the best so far */
} ls_run_row;

typedef struct ls_run_rows {
	size_t count;
	ls_run_row *rows;
} ls_run_rows;

typedef struct ls_run_log {
	ls_run_rows steps, epochs, tests;
	int64_t stopped_step;     /* the run was stopped early after it; 0: it was not */
	ls_memberships nodes;     /* of an elastic run; else empty */
	int by_steps;             /* epochs have several tests, or none */
	ls_class_metrics classes; /* samples is 0: there is no eval.json */
} ls_run_log;

/* A run without metrics has an empty log. On failure `out` is unchanged. */
ls_status ls_run_log_read(ls_run_log *out, const char *run);
void ls_run_log_release(ls_run_log *log); /* harmless when it is zero */

/* The test whose weights the run keeps as the best; SIZE_MAX: none is marked. */
size_t ls_run_log_best(const ls_run_log *log);

#endif
