/*
 * norm_pass.h - norms of the whole step before anything is updated (clipping, LAMB).
 *
 * Owners keep the sums of their shards and take the norms of their blocks as they sum them; then every node gets the
 * norms of all blocks. With all norms of a step a node computes what follows from them, the scale or the ratios; owners
 * then go on from the sums they kept, with another pass or with the update. The cost of a pass is a wait for the
 * slowest owner, once, and a few bytes per block.
 *
 * Invariants
 *  1. The norms of a pass lie in `all` in block order, whichever node they came from: what follows has the same bits
 *     on every node.
 *  2. Nothing of a step is updated, and no block has its next pass, before this node has all norms of this pass.
 *  3. Passes advance like shards, by themselves: the norms of the next pass are expected when this one's are complete.
 *
 * A norm pass knows nothing of strategies: where a node owns everything it is complete when its own norms are.
 */
#ifndef LS_EXCHANGE_NORM_PASS_H
#define LS_EXCHANGE_NORM_PASS_H

#include <stdatomic.h>

#include "exchange/exchange.h"
#include "exchange/send_slot.h"

/* Norms of all blocks in one pass. */
typedef struct ls_norms {
	size_t *at;     /* (blocks of the gradient + 1) where a block's begin in `all` */
	double *all;    /* in block order */
	size_t *begin;  /* (owners + 1) where an owner's begin in `packed` */
	double *packed; /* owner by owner: what messages carry */
} ls_norms;

typedef struct ls_norm_pass {
	ls_norms norms[LS_NORM_PASSES_MAX];
	float *kept;             /* (own) sums that wait for their update */
	ls_send_slot *out, *in;  /* (group), (owners) */
	int own_shards, senders; /* buckets of the gradient with an own shard; owners with blocks of the gradient */
	int shards_left, owners_left; /* of this pass: not yet summed here; norms not yet here */
	uint64_t step;                /* the step whose norms are collected */
	int pass;                     /* and which of its passes */
	int expecting, wanted, leaving;
	_Atomic(uint64_t) steps; /* steps whose norms are complete */
} ls_norm_pass;

ls_status ls_norm_pass_init(ls_exchange *x);
void ls_norm_pass_release(ls_exchange *x);

/* Expect the norms of other owners, if they are not expected yet; under the lock. */
void ls_norm_pass_expect(ls_exchange *x);

/* Whether a block of this bucket has its norms taken now, instead of being updated. */
int ls_norm_pass_is_due(const ls_exchange *x, int bucket);

/* The sums of a block that were kept. */
float *ls_norm_pass_kept(ls_exchange *x, int bucket, size_t begin);

/* Keep the sums of a block and take its norms. */
void ls_norm_pass_block(ls_exchange *x, int bucket, size_t begin, size_t end, const float *sums, int participant);

/* One of the own shards has been through this pass; under the lock. */
void ls_norm_pass_shard_done(ls_exchange *x);

#endif
