#include "exchange/worklist.h"

#include <stdlib.h>

/* Publications of a bucket that may be older than one of another with something left: it was summed, then applied. And
 * how many are remembered, so that the oldest of these is not overwritten while somebody looks. */
enum { KEPT = 2, RING = 3 };

static _Atomic(int) *order_at(const ls_worklist *l, uint64_t place)
{
	return &l->order[place % (uint64_t)(RING * l->buckets)];
}

ls_status ls_worklist_init(ls_worklist *l, int buckets, int participants)
{
	size_t b = (size_t)buckets, p = (size_t)participants;

	*l = (ls_worklist){ .buckets = buckets, .participants = participants };
	l->order = calloc(RING * b, sizeof(*l->order));
	l->taken = calloc(b * p, sizeof(*l->taken));
	l->units = calloc(b, sizeof(*l->units));
	l->undone = calloc(b, sizeof(*l->undone));
	l->seen = calloc(p, sizeof(*l->seen));
	if (!l->order || !l->taken || !l->units || !l->undone || !l->seen) {
		ls_worklist_release(l);
		return ls_fail(LS_EMEMORY, "no memory for the exchange's lists of work");
	}
	return LS_OK;
}

void ls_worklist_release(ls_worklist *l)
{
	free(l->seen);
	free(l->undone);
	free(l->units);
	free(l->taken);
	free(l->order);
	*l = (ls_worklist){ 0 };
}

/* Participants take turns in having the first range, so that buckets of one unit do not all fall to the same one. */
static void own_range(const ls_worklist *l, int bucket, int participant, int units, int *begin, int *end)
{
	int64_t turn = (participant + bucket) % l->participants;
	*begin = (int)(units * turn / l->participants);
	*end = (int)(units * (turn + 1) / l->participants);
}

void ls_worklist_publish(ls_worklist *l, int bucket, int units)
{
	uint64_t place = atomic_load_explicit(&l->published, memory_order_relaxed);

	atomic_store_explicit(&l->undone[bucket], units, memory_order_relaxed);
	atomic_store_explicit(&l->units[bucket], units, memory_order_relaxed);
	for (int p = 0; p < l->participants; p++)
		atomic_store_explicit(&l->taken[bucket * l->participants + p], 0, memory_order_release);
	atomic_store_explicit(order_at(l, place), bucket, memory_order_relaxed);
	atomic_store_explicit(&l->published, place + 1, memory_order_release);
}

/* A unit of `owner`'s range of the bucket, or -1. Looking first keeps the counter from running away. */
static int take(ls_worklist *l, int bucket, int owner)
{
	_Atomic(int) *taken = &l->taken[bucket * l->participants + owner];
	int begin, end;

	int gone = atomic_load_explicit(taken, memory_order_acquire);
	own_range(l, bucket, owner, atomic_load_explicit(&l->units[bucket], memory_order_relaxed), &begin, &end);
	while (gone < end - begin)
		if (atomic_compare_exchange_weak_explicit(taken, &gone, gone + 1, memory_order_acq_rel,
							  memory_order_acquire))
			return begin + gone;
	return -1;
}

/* The oldest publication that may have something left. */
static uint64_t oldest(const ls_worklist *l, uint64_t published)
{
	uint64_t kept = (uint64_t)KEPT * (uint64_t)l->buckets;
	return published > kept ? published - kept : 0;
}

int ls_worklist_take_own(ls_worklist *l, int participant, int *bucket, int *unit)
{
	uint64_t published = atomic_load_explicit(&l->published, memory_order_acquire);
	uint64_t *seen = &l->seen[participant];

	if (*seen < oldest(l, published))
		*seen = oldest(l, published);
	for (; *seen < published; (*seen)++) {
		*bucket = atomic_load_explicit(order_at(l, *seen), memory_order_relaxed);
		*unit = take(l, *bucket, participant);
		if (*unit >= 0)
			return 1;
	}
	return 0;
}

int ls_worklist_take_any(ls_worklist *l, int participant, int *bucket, int *unit)
{
	uint64_t published = atomic_load_explicit(&l->published, memory_order_acquire);

	for (uint64_t i = oldest(l, published); i < published; i++) {
		*bucket = atomic_load_explicit(order_at(l, i), memory_order_relaxed);
		if (atomic_load_explicit(&l->undone[*bucket], memory_order_relaxed) == 0)
			continue;
		for (int k = 0; k < l->participants; k++) {
			*unit = take(l, *bucket, (participant + k) % l->participants);
			if (*unit >= 0)
				return 1;
		}
	}
	return 0;
}

int ls_worklist_done(ls_worklist *l, int bucket)
{
	return atomic_fetch_sub_explicit(&l->undone[bucket], 1, memory_order_acq_rel) == 1;
}
