/*
 * failures.h - time lost to failures, checkpoints and snapshots.
 *
 * A cluster of N nodes fails N times as often as one. A failure loses the work since the last checkpoint, half an
 * interval on average, and the time to start again; a checkpoint loses its own time C. With B = MTBF / N seconds
 * between failures and R for a restart the interval that loses least is sqrt(2 C (B + R) + C^2): Young's sqrt(2 C B)
 * when failures are rare, and Daly's within C.
 *
 * With snapshots in memory, of S seconds each, a failure loses the work since the last snapshot. Only when a neighbour
 * of the node that was lost is lost as well before the next snapshot is the work since the checkpoint lost: in a part
 * q = n (R + Is) / MTBF of failures, n = 2 neighbours (1 on two nodes), Is seconds between snapshots. So
 *
 *     1 / part = (1 + S/Is + C/Ic) (1 + ((Is + S)/2 + R + q (Ic + C)/2) / B)
 *     Is = sqrt(2 S (B + R) + S^2), in whole steps      Ic = sqrt(2 C (B/q + R) + C^2), unless it is given
 *
 * A node alone has no neighbour: what is in its memory is lost with it.
 */
#ifndef LS_TOOLS_FORECAST_FAILURES_H
#define LS_TOOLS_FORECAST_FAILURES_H

#include "tools/forecast/cluster.h"

typedef struct ls_goodput {
	double part;            /* useful part of the time: 1 without failures */
	double interval_s;      /* between checkpoints; 0: no failures */
	int64_t snapshot_every; /* steps; 0: no snapshots */
	double fallback;        /* part of failures after which the checkpoint is read; 0: no snapshots */
} ls_goodput;

/* step_s: seconds per step, which snapshots are between. */
ls_goodput ls_goodput_of(const ls_cluster *cluster, int64_t nodes, double step_s);

/* The same with a snapshot every `steps` steps, which need not be the best. Of two nodes or more. */
ls_goodput ls_goodput_with_snapshots(const ls_cluster *cluster, int64_t nodes, double step_s, double steps);

#endif
