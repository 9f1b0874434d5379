/*
 * exchange.h - gradients of micro-batches in, updated parameters out: the one mechanism behind every placement.
 *
 * A step, as a node sees it:
 *
 *     ls_exchange_begin()                 who computes which micro-batch
 *       each device, for each of its micro-batches:
 *         ls_exchange_need()              before a layer's parameters are read: they have arrived
 *         ls_exchange_slot()              where the micro-batch's sums are written
 *         ls_exchange_ready()             a range of them is final: join it with the device's others, and, when all
 *                                         devices have it, work on whatever bucket is complete
 *       ls_exchange_finish()              each device, when it has no more micro-batches: help with what is left
 *
 * A bucket that all devices of the node have finished is folded into the node's partial sums, which are pushed to the
 * owners of its shards; an owner folds the partial sums of all nodes in tree order and calls `update`; the new values
 * go back to every node (the pull), first those that the next forward pass needs first. A partial sum with many zeros,
 * as of an embedding, goes without them (pack.h). On one node there is no push and no pull: devices fold and update
 * shards straight out of each other's stores.
 *
 * Where an update depends on more than its own elements (clipping, LAMB) it waits: owners keep their sums and `measure`
 * their blocks; everybody gets the figures of all blocks, in block order; and that once or twice before any update.
 *
 * Invariants
 *  1. The sums given to `update` are those of the fixed tree over the step's micro-batches (tree.h): the same bits for
 *     any assignment, any number of nodes, devices, threads and servers. (Not with wire bf16, staleness or library
 *     sums.)
 *  2. `update` is called once for every block in every step, by one thread, when nobody reads these parameters.
 *  3. After ls_exchange_need(range) returns in step s, params[range] are those after step s - 1, on every worker.
 *  4. A step allocates nothing and, on one node, ends complete: all parameters are updated when the last device's
 *     ls_exchange_finish() has returned.
 *  5. Nothing waits for a node that is gone: every wait ends when the communication thread fails, and
 *     ls_exchange_status() tells.
 *
 * Bytes on the wire at most, for N nodes and M bytes of gradient, fp32: allreduce (N-1)/N M out and in, twice, for
 * every node (push and pull: what a ring moves); ps with S servers: a worker M out and M in, a server (N-S)/S M out and
 * in.
 */
#ifndef LS_EXCHANGE_EXCHANGE_H
#define LS_EXCHANGE_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/team.h"
#include "comm/comm.h"
#include "exchange/partition.h"
#include "exchange/round.h"

typedef struct ls_exchange ls_exchange;

typedef enum ls_wire { LS_WIRE_FP32, LS_WIRE_BF16 } ls_wire;

/* What the exchange tells about its own doings, for a trace. */
typedef enum ls_exchange_act {
	LS_ACT_PUSH,    /* a message with a partial sum of bucket `number`: from post to arrival */
	LS_ACT_COMBINE, /* folding partial sums of a block of bucket `number` */
	LS_ACT_UPDATE,  /* `update` of it */
	LS_ACT_PULL,    /* a message with new values */
	LS_ACT_WAIT     /* a device waited for parameters of bucket `number` */
} ls_exchange_act;

/* One live block [begin, end) in one round of measuring. */
typedef struct ls_measuring {
	int round;
	size_t begin, end;
	float *sums;     /* may be changed: the next round and `update` find them as they were left */
	double *figures; /* (as many as were announced) out */
	int participant; /* as in `update` */
} ls_measuring;

#define LS_ROUNDS_MAX 2

typedef struct ls_exchange_options {
	ls_comm *comm;      /* NULL: one node. It carries the exchange's messages: free it first */
	int servers;        /* the last so many nodes own everything and compute nothing; 0: every node owns a share */
	int devices;        /* of this node; 0 on a server */
	int threads;        /* of a device */
	size_t live, extra; /* floats of gradient; floats of sums that ride along */
	size_t block;       /* floats: unit of ownership and of `measure` */
	size_t bucket;      /* floats */
	int64_t microbatches; /* most micro-batches a step has */
	int scattered;        /* micro-batches of a device may lie anywhere, not in one run (tests) */
	ls_round_room room;   /* what steps take at most; zeros: any run of micro-batches may be any device's */
	ls_wire wire;
	int staleness;   /* ps: how many steps a worker may be ahead of the slowest; 0: none */
	int library_sum; /* the transport's own sum instead of partial sums and owners; every node updates everything */
	int plain;       /* partial sums are sent as they are, not without their zeros (pack.h) */
	int rounds;      /* nothing is updated before all of the step is summed and `measure`d so many times */

	float *params; /* (live) what forward reads */
	float *master; /* (live) what `update` changes: params itself, or with bf16 the owner's exact copy */
	float *state;  /* (extra) what `update` micro-batches for the extra floats: results everybody gets */

	/* Blocks [begin, end) of the flat vector are summed: `sums` points at begin's. Live ranges change master;
	 * ranges of the extra floats (begin >= ls_exchange_extra_begin()) change state. `participant` numbers the
	 * caller, one of devices * threads + 2: device * threads + member; behind these the communication thread, and
	 * whoever waits in begin() or await(). */
	void (*update)(void *context, size_t begin, size_t end, const float *sums, int participant);
	/* How many figures a live block comes to in a round, one or more, the same on all nodes; NULL: one. Asked by
	 * ls_exchange_new(). */
	size_t (*figures)(void *context, int round, size_t begin, size_t end);
	void (*measure)(void *context, const ls_measuring *measuring);
	/* On every node, with the figures of all blocks in block order, before anything of the next round. */
	void (*measured_all)(void *context, int round, const double *figures, size_t count);
	void (*act)(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s);
	void *context;
} ls_exchange_options;

ls_status ls_exchange_new(ls_exchange **out, const ls_exchange_options *options);
void ls_exchange_free(ls_exchange *exchange);

/* Bytes ls_exchange_new() takes with these options, counted by the code that takes them. */
ls_status ls_exchange_bytes(const ls_exchange_options *options, size_t *bytes);

const ls_partition *ls_exchange_partition(const ls_exchange *exchange);
size_t ls_exchange_extra_begin(const ls_exchange *exchange);        /* floats into a slot, where the extra floats are */
int ls_exchange_owner_index(const ls_exchange *exchange, int node); /* for ls_partition_shard(); -1: owns nothing */

/* Who computes what in a step. Both arrays are copied. */
typedef struct ls_exchange_assignment {
	uint64_t step; /* one more than the last one */
	int64_t microbatches;
	const int *node;   /* (micro-batches) which node computes the micro-batch */
	const int *device; /* (micro-batches) which of its devices; looked at for this node's micro-batches */
	float scale;       /* with staleness: of this node's gradient, 1 / its samples; servers take it as it comes */
} ls_exchange_assignment;

/* By one thread, while no device of the node is at work. */
void ls_exchange_begin(ls_exchange *exchange, const ls_exchange_assignment *assign);

/* Micro-batches this device computes in this step, ascending; `index` is borrowed until the next begin. */
int64_t ls_exchange_microbatches(const ls_exchange *exchange, int device, const int64_t **index);

/* Where the device's k-th micro-batch of this step writes its sums: (extra_begin + extra) floats. It is written anew in
 * every step, for the exchange takes zeros out of what is ready. */
float *ls_exchange_slot(ls_exchange *exchange, int device, int64_t k);

/* Where its extra floats are written, once the last step's have been seen to. */
float *ls_exchange_extra(ls_exchange *exchange, int device, int64_t k);

/* [begin, end) of the k-th micro-batch is written and its parameters will not be read again for this micro-batch:
 * called by all members of the device's team, or for the extra floats by member { .rank = 0, .size = 1 } alone. Before
 * the first of a step leaves the node the last step's extra floats must be here: returns the seconds it waited for
 * that. */
double ls_exchange_ready(ls_exchange *exchange, int device, int64_t k, size_t begin, size_t end, ls_member member);

/* Wait for parameters [begin, end). */
void ls_exchange_need(ls_exchange *exchange, int device, size_t begin, size_t end, ls_member member);

/* This device computes nothing more in this step: help with what is left. Called by all members of its team. */
void ls_exchange_finish(ls_exchange *exchange, int device, ls_member member);

/* Wait until step `step` is complete on this node: every bucket's new values and the extra floats' results are here. */
ls_status ls_exchange_await(ls_exchange *exchange, uint64_t step);

ls_status ls_exchange_status(ls_exchange *exchange);

/* Inside `update`: whose sums of which step these are, and how many updates the range has had before. */
typedef struct ls_exchange_source {
	int node; /* -1: all nodes' together; with staleness: the worker's alone */
	uint64_t step, updates;
} ls_exchange_source;
ls_exchange_source ls_exchange_source_of(const ls_exchange *exchange, size_t begin);

/* Seconds of the last step that members of devices spent waiting: for parameters to arrive, and in finish(). */
typedef struct ls_exchange_times {
	double need_s;   /* mean over devices: exposed communication */
	double finish_s; /* mean over devices: waiting for other devices of the node, and helping */
} ls_exchange_times;
ls_exchange_times ls_exchange_take_times(ls_exchange *exchange); /* since the last call */

#endif
