/*
 * calibration.h - what the one-node rows of a table say: the rate of a device on each host, the cost of the exchange
 * inside a node, and how far hosts that should be the same differ.
 */
#ifndef LS_TOOLS_FIT_CALIBRATION_H
#define LS_TOOLS_FIT_CALIBRATION_H

#include "tools/fit/table.h"

/* The one-node row with the fewest devices of this job on this host, of which the rate of one device is taken; NULL:
 * there is none. Hosts of a sweep without rows of their own are as the first that has one. */
const ls_fit_point *ls_fit_base(const ls_fit_table *table, const ls_fit_point *job, const char *host);

/* Samples per second of one device of a base. */
static inline double ls_fit_device_rate(const ls_fit_point *base)
{
	return base->rate / (double)base->devices;
}

/*
 * Seconds per step that `devices` devices on the base's host lose to each other: step of N devices less that of one.
 * Between measured numbers it goes with (N - 1) / N, as the bytes of an exchange do. Negative: no row says.
 */
double ls_fit_inside(const ls_fit_table *table, const ls_fit_point *base, int64_t devices);

/*
 * How far one-node rows are off the curve that they should be on, relative standard deviation: of each host with at
 * least three numbers of devices, seconds per sample against (N - 1) / N; pooled over all. *degrees is how many rows
 * more there were than parameters; 0: none.
 */
double ls_fit_scatter(const ls_fit_table *table, double *degrees);

/* Relative standard deviation of one-device rates between hosts of the same job and link: pooled over all jobs. */
double ls_fit_spread(const ls_fit_table *table);

#endif
