/*
 * worklist.h - buckets that are ready to be worked on, shared by all participants.
 *
 * A bucket is published with a number of units. A participant takes units of its own range of them first (which lie in
 * its cache, and are disjoint from those of others), and of any range when its own are done.
 *
 * Invariants
 *  1. Every published unit is taken exactly once; a bucket is not published again before its units are done, nor three
 *     times while one of another is left.
 *  2. What the publisher wrote before publishing is seen by the thread that takes a unit.
 */
#ifndef LS_EXCHANGE_WORKLIST_H
#define LS_EXCHANGE_WORKLIST_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_worklist {
	int buckets, participants;
	_Atomic(uint64_t) published; /* since the beginning */
	_Atomic(int) *order;         /* ring of a few per bucket: the bucket of publication i at i modulo its size */
	_Atomic(int) *taken;         /* (buckets, participants) units of a participant's own range that are gone */
	_Atomic(int) *units;         /* (buckets) */
	_Atomic(int) *undone;        /* (buckets) */
	uint64_t *seen;              /* (participants) publications whose own ranges were looked at */
} ls_worklist;

ls_status ls_worklist_init(ls_worklist *list, int buckets, int participants);
void ls_worklist_release(ls_worklist *list);

/* By one thread at a time. */
void ls_worklist_publish(ls_worklist *list, int bucket, int units);

/* A unit of this participant's own ranges: 1 and *bucket, *unit; 0: there is none now. */
int ls_worklist_take_own(ls_worklist *list, int participant, int *bucket, int *unit);

/* A unit of any participant's range. */
int ls_worklist_take_any(ls_worklist *list, int participant, int *bucket, int *unit);

/* A unit is done; 1: it was the bucket's last one. */
int ls_worklist_done(ls_worklist *list, int bucket);

#endif
