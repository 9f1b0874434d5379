/*
 * rows.h - results in short, for who has called a sweep.
 */
#ifndef LS_TOOLS_SWEEP_ROWS_H
#define LS_TOOLS_SWEEP_ROWS_H

#include <lockstep/sweep.h>

#include "tools/results/results.h"

/* The first `count` points; speedups are over any of them all. */
ls_status ls_sweep_rows(const ls_results *results, size_t count, const char *path, ls_sweep_result *out);

#endif
