/*
 * strategy.h - how nodes exchange gradients and parameters: a table with one row per strategy, one file each in
 * strategies/.
 *
 *     local.c      one node: devices add each other's gradients and update, no messages
 *     allreduce.c  every node owns 1/N of every bucket
 *     ps.c         the last nodes are parameter servers and own everything
 *     ps_async.c   parameter servers that update as soon as one worker's gradients are there
 *     mpi.c        the MPI library sums, every node updates everything
 *
 * A strategy says which nodes own which shards (arrange) and what happens at the points of a step where strategies
 * differ. What they share is in files of its own: summation.c, block_work.c, reduce_scatter.c, all_gather.c,
 * sharded_step.c, norm_pass.c and the codecs. A new strategy is a file of strategies/, a name below and an
 * entry in strategies/table.c.
 */
#ifndef LS_EXCHANGE_STRATEGY_H
#define LS_EXCHANGE_STRATEGY_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/train.h>

#include "base/status.h"
#include "exchange/codec.h"

typedef struct ls_exchange ls_exchange;
typedef struct ls_exchange_assignment ls_exchange_assignment;
typedef struct ls_participant ls_participant;

/* The sums that `update` is given: of all nodes in step `step`, or of one node (ps-async). */
typedef struct ls_exchange_source {
	int node;         /* -1: the sums are those of all nodes */
	uint64_t step;    /* the node's step, or the common one */
	uint64_t updates; /* that the range has had before */
} ls_exchange_source;

typedef struct ls_strategy {
	ls_strategy_info info; /* what other modules, and programs, may know of it */
	int synchronous;       /* all nodes complete a step together: a step has norms, and one loss */
	int replicated;        /* every node owns everything, and keeps all optimizer state */
	int in_order;          /* a node adds up all it computed, in order, instead of by the tree */
	int encodes;           /* partial sums travel by the codec that was asked for; else they are fp32 */
	int changes;           /* new values may travel as changes: all receivers have the same values */
	int overlap;           /* steps that shards may be behind devices */

	/* Shard owners, how many partial sums there can be, how threads wait: fields of ls_exchange marked "arranged".
	 */
	void (*arrange)(ls_exchange *x);
	/* Messages, and memory of this strategy alone (strategy_state), of which `bytes` are large. Optional: NULL. */
	ls_status (*init)(ls_exchange *x);
	void (*release)(ls_exchange *x);
	size_t (*bytes)(const ls_exchange *x);

	/* A step begins: expect its messages. Under the lock. */
	void (*begin)(ls_exchange *x, const ls_exchange_assignment *assign);
	/* This node has no micro-batches in this step. Optional. */
	void (*idle)(ls_exchange *x);
	/* All devices of the node have given their gradients of the bucket. */
	void (*bucket_ready)(ls_exchange *x, int bucket);
	/* Blocks that a worker of a device does before it computes on: its own ones. */
	void (*do_own_work)(ls_exchange *x, int participant);
	/* What a node does to its sums before they leave it. Optional. */
	void (*transform)(ls_exchange *x, int bucket, float *sums, size_t count);
	/* The node's partial sums of the bucket are complete: send them. */
	void (*send)(ls_exchange *x, int bucket);
	/* A partial sum of this node's shard has come from `node`; under the lock. */
	void (*partial_arrived)(ls_exchange *x, int bucket, int node);
	/* The sums that `update` gets, of the block [begin, end) of this node's shard. */
	const float *(*sum_block)(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part);
	/* All blocks of this node's shard are updated; under the lock. */
	void (*shard_updated)(ls_exchange *x, int bucket);
	ls_exchange_source (*source)(const ls_exchange *x, int bucket);
} ls_strategy;

/* The rows, one per file. */
extern const ls_strategy ls_strategy_local, ls_strategy_allreduce, ls_strategy_ps, ls_strategy_ps_async,
	ls_strategy_mpi;

/* The strategies between nodes, in the order of help; NULL past the end. On one node every job is `local`. */
const ls_strategy *ls_strategy_row(size_t i);
ls_status ls_strategy_find(const char *name, const ls_strategy **out);

/* Whether owners keep exact values apart from those that travel (ls_exchange_options.master). */
int ls_strategy_needs_master(const ls_strategy *strategy, const ls_codec *codec);

#endif
