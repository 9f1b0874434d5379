/*
 * exchange_internal.h - what the files of the exchange share.
 *
 *     setup.c           from options to memory
 *     exchange.c        the functions that devices call: begin, slot, ready, need, finish
 *     block_work.c      units of work: adding partial sums of a block, norms, update
 *     send_slot.c       messages that are posted again every step
 *     reduce_scatter.c  partial sums to the owners of shards
 *     all_gather.c      new values from owners to nodes
 *     sharded_step.c    a synchronous step of shards with owners: what allreduce and ps share
 *     norm_pass.c       norms of the whole step before any update
 *     strategies/       local.c, allreduce.c, ps.c, ps_async.c and mpi.c are the rows of table.c
 *     codecs/           fp32.c, bf16.c and sparse.c have those of the other table.c
 *
 * Counting steps
 *  1. Everything about devices (remaining, node_work) belongs to the step under way: begin() resets it, for the
 *     devices are done with the step before.
 *  2. A shard of this node advances by itself: `shard_step[b]` is the step it is summing; when it is updated it expects
 *     the next one if that has begun. So the shards may still work on step s - 1 while devices are in step s, and
 *     never further apart: devices of step s + 1 need all of step s - 1. Hence two summations are kept, by parity.
 *  3. `arrivals[o]` of a bucket counts new values of owner o's shard since the first step and is never reset: the
 *     bucket is that of step s once all of them have reached s - first.
 */
#ifndef LS_EXCHANGE_EXCHANGE_INTERNAL_H
#define LS_EXCHANGE_EXCHANGE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "exchange/exchange.h"
#include "exchange/norm_pass.h"
#include "exchange/send_slot.h"
#include "exchange/worklist.h"

typedef struct ls_bucket_state {
	const ls_codec *codec;       /* of its partial sums; step statistics are fp32 */
	_Atomic(size_t) remaining;   /* floats that devices still owe in this step */
	_Atomic(uint64_t) *arrivals; /* (owners) */
	unsigned char *comes;        /* (owners) whether new values of their shards come to this node */
	size_t begin, end;           /* this node's own shard */
	size_t own_offset;           /* of the own shard, among all own shards */
	uint64_t shard_step;         /* the step it sums */
	int expecting;               /* it waits for partial sums of that step */
	int awaited;                 /* partial sums still to come (the node's own count as one) */
	int leaving;                 /* messages with its values that are not yet sent */
	int passes_done;             /* norm passes; after the last one only the update is left */
} ls_bucket_state;

/* Memory of one thread that takes part. */
struct ls_participant {
	float *sums;     /* (block) */
	float *scratch;  /* of ls_fold_run() */
	float *expanded; /* (rows + outputs, block) encoded partial sums as floats */
	const float **inputs;
	double need_s, finish_s;
};

/* Messages with partial sums. */
typedef struct ls_reduce_scatter {
	ls_send_slot *out;     /* (buckets, owners, outputs) */
	ls_send_slot *in;      /* (buckets, inputs) */
	float *incoming;       /* (rows, own) partial sums of other nodes */
	size_t grain;          /* of sparse partial sums */
	unsigned char *bitmap; /* scratch of packing */
} ls_reduce_scatter;

/* Messages with new values. */
typedef struct ls_all_gather {
	const ls_codec *codec;
	ls_send_slot *out;         /* (buckets, group) */
	ls_send_slot *in;          /* (buckets, owners) */
	unsigned char *change_out; /* (own) elements: changes of the own shards */
	unsigned char **change_in; /* (owners) each (its shards) */
	size_t *change_count;      /* (owners) elements */
	size_t *change_begin;      /* (buckets, owners) where a bucket's begin in change_in */
} ls_all_gather;

/* Floats of everything large: what setup.c allocates, and what a memory plan counts. */
typedef struct ls_exchange_sizes {
	size_t stores, outgoing; /* how many, each as wide as the gradient */
	size_t incoming, kept;
	size_t change_out, change_in; /* elements of the all-gather's codec */
	size_t scratch, expanded;     /* of one participant */
} ls_exchange_sizes;

struct ls_exchange {
	ls_exchange_options o;
	const ls_strategy *strategy;
	void *strategy_state; /* what this strategy alone has */
	const ls_codec *codec;
	ls_exchange_sizes size;
	ls_partition partition;
	int nodes, node;  /* how many, which one */
	int workers;      /* nodes that compute: the first ones */
	int members;      /* devices * threads */
	int participants; /* and the communication thread, and the thread that waits for a step */
	int slots;        /* stores of a device */

	/* Arranged by the strategy. */
	int owners, first_owner; /* of every bucket; the first one's node */
	int group;               /* nodes that have shards or new values in common: 1 where each node has all */
	int outputs;             /* partial sums a node can have */
	int rows;                /* partial sums of other nodes that can come to an owner */
	int inputs;              /* partial sums a step can have, the same on all nodes */
	int updaters;            /* participants that update */
	int waiter;              /* participant that waits in begin() and await() */
	int spins;               /* looks before a wait sleeps */

	int owner; /* index among owners; -1: none */
	int begun;
	uint64_t first, step;      /* the first step begun, and the one under way */
	ls_summation summation[2]; /* by parity of the step */
	int *node_of[2], *device_of[2];
	float **store;               /* (devices * slots) each (width) */
	float **outgoing;            /* (outputs) each (width): the node's partial sums, where they are not devices' */
	_Atomic(uint64_t) *arrivals; /* (buckets, owners): the memory of the buckets' own */
	unsigned char *comes;
	size_t own;                /* floats of all own shards */
	ls_bucket_state *bucket;   /* (buckets) */
	ls_participant *part;      /* (participants) */
	ls_worklist node_work;     /* blocks of the node's partial sums */
	ls_worklist update_work;   /* blocks of own shards */
	_Atomic(int) buckets_done; /* of this step: sent, or on one node updated */
	ls_reduce_scatter reduce_scatter;
	ls_all_gather all_gather;
	ls_norm_pass norm_pass;

	pthread_mutex_t lock; /* of publishing, expecting and posting */
	pthread_mutex_t event_lock;
	pthread_cond_t event;
	_Atomic(uint64_t) news; /* how often anything has changed */
	_Atomic(int) sleepers;
};

/* The bucket of step statistics is the last one. */
static inline int ls_exchange_is_statistics(const ls_exchange *x, int bucket)
{
	return bucket == x->partition.buckets - 1;
}

static inline const ls_summation *ls_exchange_summation(const ls_exchange *x, uint64_t step)
{
	return &x->summation[step & 1];
}

/* exchange.c */
void ls_exchange_notify(ls_exchange *x);                    /* something has changed */
void ls_exchange_await_step(ls_exchange *x, uint64_t step); /* all new values of the steps before it are here */
void ls_exchange_values_arrived(ls_exchange *x, int bucket, int owner);
void ls_exchange_bucket_done(ls_exchange *x); /* the node is done with one more bucket of this step */

/* block_work.c */
/* Where partial sum `output` of this node lies, from float `at` on, as its codec has it. */
void *ls_exchange_output(const ls_exchange *x, const ls_summation *sum, int bucket, int output, size_t at);
float *ls_exchange_source_at(const ls_exchange *x, const ls_summation *sum, int input, size_t at);
/* bucket_ready of strategies that send: add up the node's partial sums, if there is anything to add, and send. */
void ls_exchange_sum_node(ls_exchange *x, int bucket);
/* do_own_work of strategies that send; and one block of anybody's: 0: there is none. */
void ls_exchange_sum_own_blocks(ls_exchange *x, int participant);
int ls_exchange_sum_any_block(ls_exchange *x, int participant);
/* The own shard of the bucket can be summed and updated; under the lock. */
void ls_exchange_publish_shard(ls_exchange *x, int bucket);
void ls_exchange_update_own_blocks(ls_exchange *x, int participant);
int ls_exchange_update_any_block(ls_exchange *x, int participant);
/* The source in strategies with a common step of all nodes. */
ls_exchange_source ls_exchange_common_source(const ls_exchange *x, int bucket);

/* reduce_scatter.c */
ls_status ls_reduce_scatter_init(ls_exchange *x);
void ls_reduce_scatter_release(ls_exchange *x);
void ls_reduce_scatter_send(ls_exchange *x, int bucket);
/* Expect partial sum number `input` of the own shard, from `node`, in row `row`; under the lock. */
void ls_reduce_scatter_expect(ls_exchange *x, int bucket, int input, int row, int node);
/* Floats [begin, end) of that partial sum: where they arrived, or decoded in `expanded`. */
const float *ls_reduce_scatter_received(const ls_exchange *x, int bucket, int input, int row, size_t begin, size_t end,
					float *expanded);
/* Sums of zero, for a node without micro-batches. */
void ls_reduce_scatter_clear(ls_exchange *x, int bucket);

/* all_gather.c */
float *ls_exchange_value_at(const ls_exchange *x, size_t at); /* where new values of the flat vector lie */
size_t ls_exchange_value_count(const ls_exchange *x, size_t begin, size_t end);
ls_status ls_all_gather_count(ls_exchange *x); /* what sizes follow from */
ls_status ls_all_gather_init(ls_exchange *x);
void ls_all_gather_release(ls_exchange *x);
void ls_all_gather_expect(ls_exchange *x); /* new values of all owners, in this step; under the lock */
/* Send the own shard's new values to all nodes; or `values` to one node; under the lock. */
void ls_all_gather_send(ls_exchange *x, int bucket);
void ls_all_gather_send_to(ls_exchange *x, int bucket, int node, void *values);
/* Changes of a block that was updated, where the codec sends changes. */
void ls_all_gather_encode(ls_exchange *x, int bucket, size_t begin, size_t end);

/* sharded_step.c: the step of the rows allreduce and ps, which differ in who owns the shards */
void ls_sharded_arrange(ls_exchange *x, int first_owner, int owners);
ls_status ls_sharded_init(ls_exchange *x);
void ls_sharded_begin(ls_exchange *x, const ls_exchange_assignment *assign);
void ls_sharded_partial_arrived(ls_exchange *x, int bucket, int node);
const float *ls_sharded_sum_block(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part);
void ls_sharded_shard_updated(ls_exchange *x, int bucket);
void ls_sharded_values_sent(ls_exchange *x, int bucket); /* a message with new values has left; under the lock */

/* What a row with this step has beside its info and arrange(), which calls ls_sharded_arrange(). */
#define LS_SHARDED_STEP                                                                                                \
	.synchronous = 1, .encodes = 1, .changes = 1, .overlap = 1, .init = ls_sharded_init,                           \
	.begin = ls_sharded_begin, .bucket_ready = ls_exchange_sum_node, .do_own_work = ls_exchange_sum_own_blocks,    \
	.send = ls_reduce_scatter_send, .partial_arrived = ls_sharded_partial_arrived,                                 \
	.sum_block = ls_sharded_sum_block, .shard_updated = ls_sharded_shard_updated,                                  \
	.source = ls_exchange_common_source

#endif
