/*
 * exchange.h - gradients of micro-batches in, updated parameters out, on any number of devices and nodes.
 *
 * A step, as a node sees it:
 *
 *     ls_exchange_begin()                 assign micro-batches to nodes and devices
 *       each device, for each of its micro-batches:
 *         ls_exchange_need()              before a layer's parameters are read: they have arrived
 *         ls_exchange_slot()              where the micro-batch's gradient is written
 *         ls_exchange_ready()             a range of it is final: add it to the device's others, and, when all
 *                                         devices have it, work on whatever bucket is complete
 *       ls_exchange_finish()              each device, when it has no more micro-batches: help with what is left
 *
 * A bucket that all devices of the node have finished is added up to the node's partial sums. These go to the owners of
 * the bucket's shards (reduce-scatter); an owner adds the partial sums of all nodes in tree order and calls `update`;
 * the new values go to every node (all-gather), those first that the next forward pass reads first. A strategy
 * (strategy.h) decides which node owns which shard and when; a codec (codec.h) what messages look like.
 *
 * Where an update depends on more than its own elements (clipping, LAMB) there are norm passes before it: owners keep
 * their sums and call `norms` for their blocks; every node gets the norms of all blocks, in block order (norm_pass.c).
 *
 * Step statistics (loss, counts, statistics of batch normalisation) are floats behind the gradient: they are summed,
 * updated and distributed as a bucket of their own.
 *
 * Invariants
 *  1. The sums given to `update` are those of the fixed tree over the step's micro-batches (tree.h): the same bits for
 *     any assignment, any number of nodes, devices, threads and servers, where the strategy keeps the bits and the
 *     codec is exact.
 *  2. `update` is called once for every block in every step, by one thread, while no thread reads these parameters.
 *     (ps-async: once for every block, worker and step.)
 *  3. After ls_exchange_need(range) returns in step s, params[range] are those after step s - 1, on every worker.
 *     (ps-async: at least as new as this worker's own step s - 1 made them.)
 *  4. A step allocates nothing and, on one node, ends complete: all parameters are updated when the last device's
 *     ls_exchange_finish() has returned.
 *  5. Nothing waits for a node that is gone: every wait ends when the communication thread fails, and
 *     ls_exchange_status() returns why.
 *
 * Bytes on the wire at most, for N nodes and M bytes of gradient, fp32, in both directions:
 *
 *     local      none
 *     allreduce  2 (N-1)/N M per node, half of it reduce-scatter, half all-gather: what a ring moves
 *     ps         S servers: 2 M per worker, 2 (N-S)/S M per server; ps-async the same
 *     mpi        what the library's algorithm moves
 */
#ifndef LS_EXCHANGE_EXCHANGE_H
#define LS_EXCHANGE_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/team.h"
#include "comm/comm.h"
#include "exchange/codec.h"
#include "exchange/partition.h"
#include "exchange/strategy.h"
#include "exchange/summation.h"

/* What the exchange records, for a trace. */
typedef enum ls_exchange_event {
	LS_EVENT_REDUCE_SCATTER, /* a message with a partial sum of bucket `number`: from post to arrival */
	LS_EVENT_COMBINE,        /* adding partial sums of a block of bucket `number` */
	LS_EVENT_UPDATE,         /* `update` of a block */
	LS_EVENT_ALL_GATHER,     /* a message with new values */
	LS_EVENT_WAIT            /* a device waited for parameters of bucket `number` */
} ls_exchange_event;

/* One block [begin, end) of the gradient in one norm pass. */
typedef struct ls_norm_block {
	int pass;
	size_t begin, end;
	float *sums;     /* may be changed: the next pass and `update` find them as they were left */
	double *norms;   /* (norm_count) out */
	int participant; /* as in `update` */
} ls_norm_block;

#define LS_NORM_PASSES_MAX 2

typedef struct ls_exchange_options {
	ls_comm *comm;               /* NULL: one node. It carries the exchange's messages: free it first */
	const ls_strategy *strategy; /* between nodes; on one node it is local */
	const ls_codec *codec;
	int servers;                  /* the last nodes that own everything and compute nothing; 0: there are none */
	int staleness;                /* ps-async: steps that a worker may be ahead of the slowest */
	int devices;                  /* of this node; 0 on a server */
	int threads;                  /* of a device */
	size_t reachable, statistics; /* floats of gradient; floats of step statistics */
	size_t block;                 /* floats: unit of ownership and of `norms` */
	size_t bucket;                /* floats */
	int64_t microbatches;         /* most micro-batches a step has */
	int scattered;                /* micro-batches of a device may lie anywhere, not in one run (tests) */
	ls_summation_buffers sum_buffers; /* of all steps; zeros: any run of micro-batches may be any device's */
	int norm_passes;                  /* how often norms of the whole step are taken before anything is updated */

	float *params; /* (reachable) what forward reads */
	float *master; /* (reachable) what `update` changes: params, or exact values: ls_strategy_needs_master() */
	float *state;  /* (statistics) what `update` leaves for the step statistics: results that every node gets */

	/* The block [begin, end) of the flat vector is summed: `sums` points at begin's. Blocks of the gradient change
	 * master, blocks of step statistics (begin >= ls_exchange_statistics_begin()) change state. `participant` is
	 * the number of the caller, one of devices * threads + 2: device * threads + rank of a worker; behind these the
	 * communication thread, and the thread that waits in begin() or await(). */
	void (*update)(void *context, size_t begin, size_t end, const float *sums, int participant);
	/* How many norms a block of the gradient has in a pass, one or more, the same on all nodes; NULL: one. Called
	 * by ls_exchange_new(). */
	size_t (*norm_count)(void *context, int pass, size_t begin, size_t end);
	void (*norms)(void *context, const ls_norm_block *block);
	/* On every node, with the norms of all blocks in block order, before anything of the next pass. */
	void (*norms_complete)(void *context, int pass, const double *norms, size_t count);
	void (*trace)(void *context, ls_exchange_event event, int participant, int64_t number, double begin_s,
		      double end_s);
	void *context;
} ls_exchange_options;

ls_status ls_exchange_new(ls_exchange **out, const ls_exchange_options *options);
void ls_exchange_free(ls_exchange *exchange);

/* Bytes that ls_exchange_new() allocates with these options, counted by the code that allocates them. */
ls_status ls_exchange_bytes(const ls_exchange_options *options, size_t *bytes);

const ls_partition *ls_exchange_partition(const ls_exchange *exchange);
size_t ls_exchange_statistics_begin(const ls_exchange *exchange);   /* floats into a slot */
int ls_exchange_owner_index(const ls_exchange *exchange, int node); /* for ls_partition_shard(); -1: owns nothing */

/* The assignment of a step. Both arrays are copied. */
struct ls_exchange_assignment {
	uint64_t step; /* one more than the last one */
	int64_t microbatches;
	const int *node;   /* (micro-batches) which node computes the micro-batch */
	const int *device; /* (micro-batches) which device of that node; read for this node's micro-batches */
	float scale;       /* ps-async: of this node's gradient, 1 / its samples; servers apply it as it comes */
};

/* By one thread, while no device of the node is at work. */
void ls_exchange_begin(ls_exchange *exchange, const ls_exchange_assignment *assign);

/* Micro-batches this device computes in this step, ascending; `index` is borrowed until the next begin. */
int64_t ls_exchange_microbatches(const ls_exchange *exchange, int device, const int64_t **index);

/* Where the device's k-th micro-batch of this step writes its gradient and, behind it, its statistics. It must be
 * written anew in every step, for the exchange packs in place what it sends. */
float *ls_exchange_slot(ls_exchange *exchange, int device, int64_t k);

/* Where its step statistics are written, once those of the last step have left. */
float *ls_exchange_statistics(ls_exchange *exchange, int device, int64_t k);

/* [begin, end) of the k-th micro-batch is written and its parameters will not be read again for this micro-batch:
 * called by all workers of the device's team, or for step statistics by worker { .rank = 0, .size = 1 } alone. Before
 * anything of a step leaves the node the statistics of the last step must be here: returns the seconds it waited for
 * them. */
double ls_exchange_ready(ls_exchange *exchange, int device, int64_t k, size_t begin, size_t end, ls_member member);

/* Wait for parameters [begin, end). */
void ls_exchange_need(ls_exchange *exchange, int device, size_t begin, size_t end, ls_member member);

/* This device computes nothing more in this step: help with what is left. Called by all workers of its team. */
void ls_exchange_finish(ls_exchange *exchange, int device, ls_member member);

/* Wait until step `step` is complete on this node: every bucket's new values and the statistics' results are here. */
ls_status ls_exchange_await(ls_exchange *exchange, uint64_t step);

ls_status ls_exchange_status(ls_exchange *exchange);

/* Inside `update`: the node and step of these sums, and how many updates the range has had before. */
ls_exchange_source ls_exchange_source_of(const ls_exchange *exchange, size_t begin);

/* Seconds of the last step that workers of devices spent waiting: for parameters to arrive, and in finish(). */
typedef struct ls_exchange_times {
	double need_s;   /* mean over devices: exposed communication */
	double finish_s; /* mean over devices: waiting for other devices of the node, and helping */
} ls_exchange_times;
ls_exchange_times ls_exchange_take_times(ls_exchange *exchange); /* since the last call */

#endif
