/*
 * failures.h - what failures and checkpoints cost.
 *
 * A cluster of N nodes fails N times as often as one. A failure loses the work since the last checkpoint, half an
 * interval on average, and the time to start again; a checkpoint loses its own time. For small rates of failure the
 * interval that loses least is Young's, sqrt(2 * checkpoint * MTBF / N).
 */
#ifndef LS_TOOLS_FORECAST_FAILURES_H
#define LS_TOOLS_FORECAST_FAILURES_H

#include "tools/forecast/cluster.h"

typedef struct ls_goodput {
	double part;       /* of the time that is kept: 1 when nothing fails */
	double interval_s; /* between checkpoints; 0: nothing fails */
} ls_goodput;

ls_goodput ls_goodput_of(const ls_cluster *cluster, int64_t nodes);

#endif
