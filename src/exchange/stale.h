/*
 * stale.h - servers that do not wait for everybody (placement ps with staleness).
 *
 * A worker's sums of a bucket are applied as they come and the new values go back to that worker alone, so a fast
 * worker does not wait for a slow one, up to a limit: the answer to the extra floats of round r is held back until
 * every worker has completed r + 2 - staleness rounds. (With the answer to round r a worker can be at work on round
 * r + 2: it waits for answers of extra floats before it writes those of the round after the next.)
 *
 * Invariants
 *  1. A bucket's shard is changed by one worker's sums at a time, in the order they came.
 *  2. What is sent is a copy: the shard may change again while it is on its way.
 *  3. The bits depend on who came first. Every sample still counts once.
 */
#ifndef LS_EXCHANGE_STALE_H
#define LS_EXCHANGE_STALE_H

#include "exchange/exchange.h"

/* What a server keeps for each of its buckets. */
typedef struct ls_stale_bucket {
	int *waiting; /* (workers) ring of those whose sums are here */
	int first, count;
	int worker;                /* whose sums are being applied; -1: nobody's */
	_Atomic(uint64_t) *served; /* (workers) rounds */
	uint64_t updates;          /* of all workers together */
} ls_stale_bucket;

typedef struct ls_stale {
	int workers;
	ls_stale_bucket *bucket; /* (buckets) */
	float **reply;           /* (workers) each (own): values on their way */
	unsigned char *held;     /* (workers) an answer to extra floats is held back */
} ls_stale;

ls_status ls_stale_new(ls_exchange *exchange);
void ls_stale_free(ls_exchange *exchange);

void ls_stale_expect(ls_exchange *exchange);                         /* first step: sums of every worker may come */
void ls_stale_came(ls_exchange *exchange, int bucket, int worker);   /* lock held */
void ls_stale_applied(ls_exchange *exchange, int bucket);            /* lock held: the shard is updated */
int ls_stale_is_served(const ls_exchange *exchange, uint64_t steps); /* every worker has had that many */

#endif
