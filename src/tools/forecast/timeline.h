/*
 * timeline.h - what a device does in a step, as a list of actions: wait for parameters, compute for so long, hand over
 * a bucket. It is the profile's layers seen through the exchange's buckets.
 */
#ifndef LS_TOOLS_FORECAST_TIMELINE_H
#define LS_TOOLS_FORECAST_TIMELINE_H

#include <stddef.h>

#include "backends/profile.h"
#include "exchange/partition.h"

typedef enum ls_action_kind {
	LS_DO_NEED, /* buckets [first, last] of the last step's values, or of this one's */
	LS_DO_RUN,  /* `seconds` */
	LS_DO_GIVE  /* bucket `first` is final on this device */
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
	double compute_s; /* of all its LS_DO_RUN but what is done for the exchange */
} ls_timeline;

typedef struct ls_timeline_options {
	const ls_profile *profile;
	const ls_partition *plan;
	int64_t microbatches;    /* a device computes in a step */
	int alone;               /* no other node: nothing is waited for */
	int after;               /* others' way: buckets go after backward, two at a time, and forward needs all */
	double give_s_per_float; /* what the devices of the node do with a bucket before it can go: added up, updated */
	double give_s;           /* and once a step, whatever the size */
} ls_timeline_options;

ls_status ls_timeline_make(ls_timeline *out, const ls_timeline_options *options);
void ls_timeline_release(ls_timeline *timeline);

#endif
