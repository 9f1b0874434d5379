/*
 * replay.h - the backend whose devices sleep through a recorded profile: a device asks for parameters before a layer's
 * forward, sleeps as long as the layer took, and delivers a gradient of the right size after its backward.
 *
 * The other side of the hooks (exchange, update, messages) works as in training, so the exchange of more devices than
 * there are cores can be measured. Times are kept to absolute deadlines: what a layer oversleeps the next
 * one sleeps less, and time spent in hooks is added, as it is for a device that computes.
 */
#ifndef LS_BACKENDS_REPLAY_REPLAY_H
#define LS_BACKENDS_REPLAY_REPLAY_H

#include "backends/backend.h"
#include "backends/profile.h"

/* ls_devices_options.backend_options. */
typedef struct ls_replay_options {
	const ls_profile *profile; /* borrowed */
	double speed;              /* 0.5: as a device half as fast */
	float value;               /* of every gradient */
} ls_replay_options;

/* Whether the profile is of what this graph does: the same layers with the same parameters. `label` names it. */
ls_status ls_replay_fits(const ls_profile *profile, const ls_graph *graph, const char *label);

#endif
