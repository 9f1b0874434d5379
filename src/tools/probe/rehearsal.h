/*
 * rehearsal.h - the exchange of training steps without the training: gradients are there at once, and an update is a
 * copy past the caches. What a step takes is then the exchange's alone.
 *
 * Every micro-batch's gradient is all ones and every device has one micro-batch, so that all parameters must come out
 * as the number of devices: ls_rehearsal_check().
 */
#ifndef LS_TOOLS_PROBE_REHEARSAL_H
#define LS_TOOLS_PROBE_REHEARSAL_H

#include "exchange/exchange.h"

typedef struct ls_rehearsal ls_rehearsal;

typedef struct ls_rehearsal_options {
	ls_comm *comm;         /* NULL: one node */
	const int *devices_of; /* (nodes); read by ls_rehearsal_new() alone. Servers' do not count */
	int servers;
	size_t floats; /* of gradient */
	size_t bucket; /* floats; 0: training's default */
	const ls_codec *codec;
} ls_rehearsal_options;

/* Called by all nodes. With a communication thread, it must be freed before the rehearsal is. */
ls_status ls_rehearsal_new(ls_rehearsal **out, const ls_rehearsal_options *options);
void ls_rehearsal_free(ls_rehearsal *rehearsal);

/* One step; nodes begin it together. Seconds until this node has all new parameters. */
ls_status ls_rehearsal_step(ls_rehearsal *rehearsal, double *seconds);

/* Whether all parameters are what they must be after a step. */
ls_status ls_rehearsal_check(const ls_rehearsal *rehearsal);

#endif
