/*
 * simulate.h - simulate training steps on a cluster: devices follow their timelines, buckets go to their shard owners
 * (reduce-scatter), are summed and updated there, and the new values come back (all-gather), as in the exchange.
 *
 * Simulated: message priorities and the window of a communication thread, overlap with backward and with the next
 * forward pass, shards and their owners, waiting threads that help with sums and updates, shared links, shared cores.
 * Not simulated: packet loss and congestion inside the network (all links end at an ideal switch), variation from step
 * to step, staleness, norm passes (clipping, LAMB), zeros that are not sent.
 */
#ifndef LS_TOOLS_FORECAST_SIMULATE_H
#define LS_TOOLS_FORECAST_SIMULATE_H

#include "tools/forecast/scenario.h"

typedef struct ls_simulated {
	double step_s;        /* in the steady state */
	double compute_s;     /* per step: mean over devices */
	double exposed_s;     /* waiting for parameters: mean over devices */
	double samples_per_s; /* of all nodes */
	double efficiency;    /* relative to the same devices without any waiting */
	double sent_bytes;    /* per step by the node that sends most */
	double link_busy;     /* fraction of the step in which the busiest link direction is full */
	char bottleneck[32];
} ls_simulated;

ls_status ls_simulate(const ls_scenario *scenario, ls_simulated *out);

#endif
