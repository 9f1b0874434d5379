/*
 * inside.h - what the files of the exchange share.
 *
 *     make.c      from options to memory
 *     exchange.c  the functions that devices call: begin, slot, ready, need, finish
 *     combine.c   units of work: folding partial sums, measuring, updating
 *     outbox.c    messages between nodes: pushes, pulls
 *     zeros.c     pushes go without them
 *     norms.c     messages with norms, and other figures, where nothing is updated before all is measured
 *     stale.c     servers that do not wait for everybody
 *
 * Counting steps
 *  1. Everything about devices (remaining, gather) belongs to the step under way: begin() resets it, for the
 *     devices are done with the step before.
 *  2. A shard of this node rolls by itself: `shard_step[b]` is the step it is summing; when it is updated it is armed
 *     for the next one if that has begun. So the shards may still work on step s - 1 while devices are in step s, and
 *     never further apart: devices of step s + 1 need all of step s - 1. Hence two rounds are kept, by parity.
 *  3. `arrivals[o]` of a bucket counts new values of owner o's shard since the first step and is never reset: the
 *     bucket is that of step s once all of them have reached s - first.
 */
#ifndef LS_EXCHANGE_INSIDE_H
#define LS_EXCHANGE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exchange/exchange.h"
#include "exchange/pack.h"
#include "exchange/round.h"
#include "exchange/stale.h"
#include "exchange/worklist.h"

/* What a message carries, and the step it belongs to. */
typedef struct ls_load {
	void *buffer;
	size_t bytes;
	uint64_t step;
} ls_load;

/* A message that is posted again every step, maybe before the communication thread has noticed that the last one
 * arrived. */
typedef struct ls_outbox {
	ls_message message;
	struct ls_exchange *exchange;
	_Atomic(int) state; /* 0: at home, 1: under way, 2: under way and wanted again */
	ls_load next;       /* what it carries then */
	size_t packed;      /* push: bytes its partial sum came to */
	int bucket, node;
	int rank; /* within a step: the bucket's place in the forward pass */
} ls_outbox;

typedef struct ls_bucket_state {
	_Atomic(size_t) remaining;   /* floats that devices still owe in this step */
	_Atomic(uint64_t) *arrivals; /* (owners) */
	size_t begin, end;           /* this node's own shard */
	size_t own_offset;           /* of it among all own shards */
	uint64_t shard_step;         /* the step it sums */
	int armed;                   /* it waits for partial sums of that step */
	int awaited;                 /* partial sums still to come (the node's own count as one) */
	int leaving;                 /* messages with its values that are still on their way out */
	int rounds_done;             /* of measuring; when it is all of them only the update is left */
	unsigned char *comes;        /* (owners) whether new values of their shards come to this node */
	size_t *begin_of;            /* (owners) bf16: where their shards lie in delta_in */
} ls_bucket_state;

/* Memory of one thread that takes part. */
typedef struct ls_participant {
	float *sums;     /* (block) */
	float *scratch;  /* of sums */
	float *expanded; /* (rows + outputs, block) bf16 and packed partial sums as floats */
	const float **inputs;
	double need_s, finish_s;
} ls_participant;

/* What blocks come to in one round of measuring. */
typedef struct ls_figures {
	size_t *at;     /* (live blocks + 1) where a block's begin in `all` */
	double *all;    /* in block order */
	size_t *begin;  /* (owners + 1) where an owner's begin in `packed` */
	double *packed; /* owner by owner: what messages carry */
} ls_figures;

/* Floats of everything large: what make.c takes, and what a plan counts. */
typedef struct ls_exchange_sizes {
	size_t stores, outgoing; /* how many, each as wide as the gradient */
	size_t incoming, summed;
	size_t delta_out, delta_in; /* half floats */
	size_t replies;             /* how many, each as wide as the own shards */
	size_t scratch, expanded;   /* of one participant */
} ls_exchange_sizes;

struct ls_exchange {
	ls_exchange_options o;
	ls_exchange_sizes size;
	ls_partition plan;
	int nodes, node;    /* how many, which one */
	int workers;        /* nodes that compute: the first ones */
	int owner;          /* index among owners; -1: none */
	int first_owner;    /* node */
	int members;        /* devices * threads */
	int participants;   /* and the communication thread, and whoever waits for a step */
	int slots, outputs; /* stores of a device; partial sums a node can have */
	int rows;           /* partial sums of other nodes that can come to an owner */
	int inputs;         /* partial sums a step can have, the same on all nodes */
	int begun;
	float scale;          /* of this node's gradient, with staleness */
	uint64_t first, step; /* the first step begun, and the one under way */
	ls_round rounds[2];   /* by parity of the step */
	int *node_of[2], *device_of[2];
	float **store;        /* (devices * slots) each (width) */
	float **outgoing;     /* (outputs) each (width): the node's partial sums, where they are not devices' stores */
	float *incoming;      /* (rows, own) partial sums of other nodes */
	size_t grain;         /* of packed partial sums; 0: all are plain */
	unsigned char *marks; /* scratch of packing: see zeros.c */
	float *summed;        /* (own) sums that are measured and wait for their update */
	uint16_t *delta_out;  /* (own) bf16: what new values differ by */
	uint16_t **delta_in;  /* (owners) bf16: (their shards) */
	_Atomic(uint64_t) *arrivals; /* (buckets, owners): the memory of the buckets' own */
	unsigned char *comes;
	size_t *delta_floats,
		*begin_of; /* (owners) floats each owns; (buckets, owners) where in them a bucket begins */
	int spins;
	size_t own;              /* floats of all own shards */
	ls_bucket_state *bucket; /* (buckets) */
	ls_participant *part;    /* (participants) */
	ls_worklist gather, update;
	_Atomic(int) gathered;   /* buckets of this step that the node is done with */
	int next_sum;            /* library sums: the bucket that is next in line */
	unsigned char *summable; /* (buckets) library sums: gathered, waiting for its turn */

	ls_outbox *push_out;           /* (buckets, owners, outputs) */
	ls_outbox *push_in;            /* (buckets, inputs) */
	ls_outbox *pull_out;           /* (buckets, nodes) */
	ls_outbox *pull_in;            /* (buckets, owners) */
	ls_outbox *norm_out, *norm_in; /* (nodes), (owners) */
	ls_figures figures[LS_ROUNDS_MAX];
	int summed_left, norms_missing; /* of this round */
	int own_buckets,
		norm_senders; /* what they begin with: live buckets with an own shard; owners with live blocks */
	uint64_t norm_step;   /* the step whose figures are collected */
	int norm_round;       /* and which of its rounds */
	int norm_armed, norms_wanted, norms_leaving;
	_Atomic(uint64_t) norm_steps; /* steps measured so far */

	ls_stale *stale; /* a server that does not wait for everybody */

	pthread_mutex_t lock; /* of publishing, arming and posting */
	pthread_mutex_t event_lock;
	pthread_cond_t event;
	_Atomic(uint64_t) news; /* how often anything has changed */
	_Atomic(int) sleepers;
};

/* combine.c */
int ls_exchange_is_stale_server(const ls_exchange *x);
int ls_exchange_is_bf16(const ls_exchange *x, int bucket);
void *ls_exchange_output(const ls_exchange *x, const ls_round *round, int bucket, int output, size_t at);
int ls_exchange_must_gather(const ls_exchange *x, const ls_round *round, int bucket);
void ls_exchange_run_gather(ls_exchange *x, int bucket, int unit, int participant);
void ls_exchange_run_update(ls_exchange *x, int bucket, int unit, int participant);
void ls_exchange_publish_shard(ls_exchange *x, int bucket); /* lock held */
int ls_exchange_help(ls_exchange *x, int participant);      /* one unit of anybody's updates; 0: none */

/* outbox.c */
float *ls_exchange_incoming(const ls_exchange *x, int bucket,
			    int row);                         /* where a partial sum of the own shard arrives */
float *ls_exchange_value_at(const ls_exchange *x, size_t at); /* where new values of the flat vector lie */
size_t ls_exchange_value_count(const ls_exchange *x, size_t begin, size_t end);
ls_outbox *ls_exchange_push_at(ls_exchange *x, int bucket, int owner, int output);
/* What is pushed to owner o, if anything is: how many partial sums of which shard. */
int ls_exchange_partials_for(const ls_exchange *x, int bucket, int o, size_t *begin, size_t *end);
void ls_exchange_expect_partial(ls_exchange *x, int bucket, int input, int row, int node);
void ls_exchange_answer(ls_exchange *x, int bucket, int node, void *values); /* lock held */
/* Copies of a sample message; to whom and about what; on its way, at once or when it is back; back, and seen to. */
ls_outbox *ls_outbox_new(ls_exchange *x, size_t count, const ls_message *sample);
void ls_outbox_address(ls_outbox *outbox, int bucket, int peer, int tag);
void ls_outbox_post(ls_outbox *outbox, ls_load load);
void ls_outbox_home(ls_outbox *outbox);
ls_status ls_exchange_make_outbox(ls_exchange *x);
void ls_exchange_free_outbox(ls_exchange *x);
void ls_exchange_expect(ls_exchange *x);                   /* lock held: begin() of a step */
void ls_exchange_push(ls_exchange *x, int bucket);         /* the node's partial sums of it are there */
void ls_exchange_shard_summed(ls_exchange *x, int bucket); /* all units of the own shard are done */

/* zeros.c */
ls_status ls_exchange_make_marks(ls_exchange *x);
void ls_exchange_pack(ls_exchange *x, int bucket); /* the node's partial sums of it, before they are pushed */
ls_status ls_exchange_check_partial(void *context, const ls_message *message);
/* Elements [begin, end) of partial sum `input` of the own shard, as floats, if it has come packed; else 0. */
int ls_exchange_open_partial(const ls_exchange *x, int bucket, int input, size_t begin, size_t end, float *out);

/* norms.c; the last two with the lock held */
ls_status ls_exchange_make_figures(ls_exchange *x);
ls_status ls_exchange_make_norms(ls_exchange *x); /* messages with them */
void ls_exchange_free_norms(ls_exchange *x);
void ls_exchange_arm_norms(ls_exchange *x);
void ls_exchange_shard_measured(ls_exchange *x); /* one of the own shards has been through this round */

/* make.c */
int ls_exchange_is_flat(const ls_exchange *x);
int ls_exchange_gets_results(const ls_exchange *x, int bucket); /* whether servers get new values of it, too */

/* exchange.c */
void ls_exchange_notify(ls_exchange *x);

#endif
