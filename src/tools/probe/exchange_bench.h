/*
 * exchange_bench.h - the gradient exchange of training steps without the training: all gradients are ready at once, and
 * the update is a copy that bypasses the caches, so that a step takes the time of the exchange alone.
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
	const int *devices_of; /* (nodes); read only by ls_exchange_bench_new(); entries of servers are ignored */
	int servers;
	size_t floats; /* of gradient */
	size_t bucket; /* floats; 0: training's default */
	const ls_codec *codec;
} ls_exchange_bench_options;

/* Called by all nodes. With a communication thread, it must be freed before the bench is. */
ls_status ls_exchange_bench_new(ls_exchange_bench **out, const ls_exchange_bench_options *options);
void ls_exchange_bench_free(ls_exchange_bench *bench);

/* Run one step, which all nodes begin together. *seconds: until this node has all new parameters. */
ls_status ls_exchange_bench_step(ls_exchange_bench *bench, double *seconds);

/* Check that all parameters have the expected value after a step. */
ls_status ls_exchange_bench_check(const ls_exchange_bench *bench);

#endif
