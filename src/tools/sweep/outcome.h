/*
 * outcome.h - read the output of a command into a point of the results.
 */
#ifndef LS_TOOLS_SWEEP_OUTCOME_H
#define LS_TOOLS_SWEEP_OUTCOME_H

#include "tools/results/results.h"
#include "tools/sweep/child.h"

/* `point` has its job; adds one repeat per repeat of the bench, and the other figures. */
ls_status ls_outcome_bench(ls_point *point, const ls_child *child);

/* Add one repeat, of the run in directory `run`; curves are those of the last repeat. */
ls_status ls_outcome_train(ls_point *point, const ls_child *child, const char *run);

#endif
