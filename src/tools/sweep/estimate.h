/*
 * estimate.h - how long a sweep will take, told before it begins.
 *
 * A step of every kind of device is timed once (a process of its own, one step of warm-up and one that counts): that is
 * 2 steps of some hundreds. A point takes its steps times that, or times what its links need for the gradients where
 * that is longer, and the start of its process.
 */
#ifndef LS_TOOLS_SWEEP_ESTIMATE_H
#define LS_TOOLS_SWEEP_ESTIMATE_H

#include "tools/sweep/measure.h"

/* Seconds of every point of the list that is pending, into seconds[list->count]; 0: not known. LS_EINTERRUPTED:
 * stopped. */
ls_status ls_estimate(const ls_sweep_environment *environment, const ls_results *results, double *seconds);

/* Of a point whose device takes `step_s` alone, and whose gradient has so many bytes. 0: not known. */
double ls_estimate_point(const ls_sweep_environment *environment, const ls_sweep_point *point, double step_s,
			 double gradient_bytes);

#endif
