/*
 * simulate.h - steps of training on a cluster, played through in time: devices follow their scripts, buckets go to
 * their owners, are added up and updated, and come back, by the rules of the exchange.
 *
 * What is simulated: urgency of messages and the window of a communication thread, overlap with backward and with the
 * next forward pass, shards and owners, who helps whom with adding up and updating, links shared by all that uses them,
 * threads that share cores. What is not: loss and congestion inside a network (links meet in a switch that forwards
 * everything), variation from step to step, staleness, rounds of measuring (clipping, LAMB), zeros that stay at home.
 */
#ifndef LS_TOOLS_FORECAST_SIMULATE_H
#define LS_TOOLS_FORECAST_SIMULATE_H

#include "tools/forecast/scenario.h"

typedef struct ls_simulated {
	double step_s;        /* from step to step, once it repeats */
	double compute_s;     /* of a device in a step: mean over devices */
	double exposed_s;     /* waiting for parameters: mean over devices */
	double samples_per_s; /* of all nodes */
	double efficiency;    /* of what as many devices would do without waiting for anybody, at their own speeds */
	double sent_bytes;    /* in a step by the node that sends most */
	double link_busy;     /* of the step, the busiest link's busier way */
	char bottleneck[32];
} ls_simulated;

ls_status ls_simulate(const ls_scenario *scenario, ls_simulated *out);

#endif
