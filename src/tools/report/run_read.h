/*
 * run_read.h - the directory of a run of `lockstep train` as a point, so that runs and sweeps share tables and plots.
 */
#ifndef LS_TOOLS_REPORT_RUN_READ_H
#define LS_TOOLS_REPORT_RUN_READ_H

#include "tools/results/results.h"

/* RUN/run.json and RUN/metrics.jsonl. A run without a logged rate or epoch is pending. On failure the outputs are
 * unchanged; release the point with ls_point_release(). */
ls_status ls_run_read(ls_point *point, ls_results_machine *machine, const char *run);

/* The parts, for tests: text of run.json, and of metrics.jsonl into the point. */
ls_status ls_run_parse(ls_point *point, ls_results_machine *machine, const void *text, size_t bytes, const char *label);
ls_status ls_run_parse_metrics(ls_point *point, const char *text, size_t bytes, const char *label);

#endif
