/*
 * rows.h - summary rows of results, for callers of ls_sweep().
 */
#ifndef LS_TOOLS_SWEEP_ROWS_H
#define LS_TOOLS_SWEEP_ROWS_H

#include <lockstep/sweep.h>

#include "tools/results/results.h"

/* Rows of the first `count` points; baselines of speedups may be any point. */
ls_status ls_sweep_rows(const ls_results *results, size_t count, const char *path, ls_sweep_result *out);

#endif
