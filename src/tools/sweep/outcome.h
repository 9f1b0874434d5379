/*
 * outcome.h - what a command has measured, into a point of the results.
 */
#ifndef LS_TOOLS_SWEEP_OUTCOME_H
#define LS_TOOLS_SWEEP_OUTCOME_H

#include "tools/results/results.h"
#include "tools/sweep/child.h"

/* `point` has its job; lists and numbers are added, a repeat for each of the bench's. */
ls_status ls_outcome_bench(ls_point *point, const ls_child *child);

/* One repeat more, of a run that is in `run`; curves are those of the last. */
ls_status ls_outcome_train(ls_point *point, const ls_child *child, const char *run);

#endif
