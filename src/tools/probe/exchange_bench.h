/*
 * exchange_bench.h - the exchange of training steps without the training: gradients are there at once, and an update is
 * a copy past the caches. What a step takes is then the exchange's alone.
 *
 * Every micro-batch's gradient is all ones and every device has one micro-batch, so that all parameters must come out
 * as the number of devices: ls_exchange_bench_check().
 */
#ifndef LS_TOOLS_PROBE_EXCHANGE_BENCH_H
#define LS_TOOLS_PROBE_EXCHANGE_BENCH_H

#include "exchange/exchange.h"

typedef struct ls_exchange_bench ls_exchange_bench;

typedef struct ls_exchange_bench_options {
	ls_comm *comm;         /* NULL: one node */
	const int *devices_of; /* (nodes); read by ls_exchange_bench_new() alone. Servers' do not count */
	int servers;
	size_t floats; /* of gradient */
	size_t bucket; /* floats; 0: training's default */
	const ls_codec *codec;
} ls_exchange_bench_options;

/* Called by all nodes. With a communication thread, it must be freed before the bench is. */
ls_status ls_exchange_bench_new(ls_exchange_bench **out, const ls_exchange_bench_options *options);
void ls_exchange_bench_free(ls_exchange_bench *bench);

/* One step; nodes begin it together. Seconds until this node has all new parameters. */
ls_status ls_exchange_bench_step(ls_exchange_bench *bench, double *seconds);

/* Whether all parameters are what they must be after a step. */
ls_status ls_exchange_bench_check(const ls_exchange_bench *bench);

#endif
