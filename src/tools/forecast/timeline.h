/*
 * timeline.h - the actions of a device in a step: wait for parameters, compute for some seconds, hand over a bucket.
 * Made from the layers of the profile and the buckets of the exchange.
 */
#ifndef LS_TOOLS_FORECAST_TIMELINE_H
#define LS_TOOLS_FORECAST_TIMELINE_H

#include <stddef.h>

#include "backends/profile.h"
#include "exchange/partition.h"

typedef enum ls_action_kind {
	LS_DO_NEED, /* wait for new values of buckets [first, last], of the previous step or of this one */
	LS_DO_RUN,  /* compute for `seconds` */
	LS_DO_GIVE  /* hand over bucket `first`, which is final on this device */
} ls_action_kind;

typedef struct ls_action {
	ls_action_kind kind;
	int first, last;
	int of_this_step;
	double seconds;
} ls_action;

typedef struct ls_timeline {
	size_t count;
	ls_action *action;
	double compute_s; /* sum of LS_DO_RUN without work for the exchange */
} ls_timeline;

typedef struct ls_timeline_options {
	const ls_profile *profile;
	const ls_partition *plan;
	int64_t microbatches; /* per step */
	int alone;            /* one node: nothing to wait for */
	int after;            /* no overlap: buckets go after backward, two at a time, and forward needs all of them */
	double give_s_per_float; /* work of the devices of the node on a bucket before it is sent: sum, update */
	double give_s;           /* fixed cost per step */
} ls_timeline_options;

ls_status ls_timeline_make(ls_timeline *out, const ls_timeline_options *options);
void ls_timeline_release(ls_timeline *timeline);

#endif
