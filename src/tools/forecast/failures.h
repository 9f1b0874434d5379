/*
 * failures.h - time lost to failures and checkpoints.
 *
 * A cluster of N nodes fails N times as often as one. A failure loses the work since the last checkpoint, half an
 * interval on average, and the time to start again; a checkpoint loses its own time C. With B = MTBF / N seconds between
 * failures and R for a restart the interval that loses least is sqrt(2 C (B + R) + C^2): Young's sqrt(2 C B) when failures
 * are rare, and Daly's within C.
 */
#ifndef LS_TOOLS_FORECAST_FAILURES_H
#define LS_TOOLS_FORECAST_FAILURES_H

#include "tools/forecast/cluster.h"

typedef struct ls_goodput {
	double part;       /* useful part of the time: 1 without failures */
	double interval_s; /* between checkpoints; 0: no failures */
} ls_goodput;

ls_goodput ls_goodput_of(const ls_cluster *cluster, int64_t nodes);

#endif
