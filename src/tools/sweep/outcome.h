/*
 * outcome.h - read the output of a command into a point of the results.
 */
#ifndef LS_TOOLS_SWEEP_OUTCOME_H
#define LS_TOOLS_SWEEP_OUTCOME_H

#include "tools/results/results.h"
#include "tools/sweep/child.h"

/* `point` has its job, and the launches before this one. Adds the repeats of the bench; its other figures replace those
 * of earlier launches. ls_point_summarize() comes after the launch is added to the point. */
ls_status ls_outcome_bench(ls_point *point, const ls_child *child);

/* Add one repeat, of the run in directory `run`; curves are those of the last launch. */
ls_status ls_outcome_train(ls_point *point, const ls_child *child, const char *run);

/* For a job with a target: its evaluations, and whether `launch` reached it. `started` is the wall clock before it. */
ls_status ls_outcome_target(ls_point *point, ls_point_launch *launch, const char *run, double started);

#endif
