/*
 * estimate.h - the estimated duration of a sweep, printed before it begins.
 *
 * One step of every kind of device is timed once, after one step of warm-up, in a separate process: 2 steps compared
 * with hundreds of a point. A point takes the start of its process, and for each of its steps that time, or the
 * transfer time of the gradients where that is longer.
 */
#ifndef LS_TOOLS_SWEEP_ESTIMATE_H
#define LS_TOOLS_SWEEP_ESTIMATE_H

#include "tools/sweep/measure.h"

/* Seconds of every pending point of the list, into seconds[list->count]; 0: not known. LS_EINTERRUPTED: stopped. */
ls_status ls_estimate(const ls_sweep_environment *environment, const ls_results *results, double *seconds);

/* Seconds of a point whose device computes a step in `step_s`, with a gradient of `gradient_bytes`. 0: not known. */
double ls_estimate_point(const ls_sweep_environment *environment, const ls_sweep_point *point, double step_s,
			 double gradient_bytes);

#endif
