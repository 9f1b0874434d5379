#include "exchange/stale.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/inside.h"

static ls_status make_buckets(ls_exchange *x, ls_stale *s)
{
	size_t workers = (size_t)s->workers;

	s->bucket = calloc((size_t)x->plan.buckets, sizeof(*s->bucket));
	for (int b = 0; s->bucket && b < x->plan.buckets; b++) {
		ls_stale_bucket *bucket = &s->bucket[b];
		bucket->worker = -1;
		bucket->waiting = calloc(workers, sizeof(*bucket->waiting));
		bucket->served = calloc(workers, sizeof(*bucket->served));
		if (!bucket->waiting || !bucket->served)
			return LS_EMEMORY;
	}
	return s->bucket ? LS_OK : LS_EMEMORY;
}

static ls_status make_replies(ls_exchange *x, ls_stale *s)
{
	s->reply = calloc((size_t)s->workers, sizeof(*s->reply));
	s->held = calloc((size_t)s->workers, 1);
	if (!s->reply || !s->held)
		return ls_fail(LS_EMEMORY, "no memory for a server's answers");
	for (size_t w = 0; w < x->size.replies; w++)
		LS_TRY(ls_floats_new(&s->reply[w], x->own, "a server's answers"));
	return LS_OK;
}

ls_status ls_stale_new(ls_exchange *x)
{
	if (!ls_exchange_is_stale_server(x))
		return LS_OK;
	x->stale = calloc(1, sizeof(*x->stale));
	if (!x->stale)
		return ls_fail(LS_EMEMORY, "no memory for a server");
	x->stale->workers = x->workers;
	if (make_buckets(x, x->stale) != LS_OK)
		return ls_fail(LS_EMEMORY, "no memory for a server's buckets");
	return make_replies(x, x->stale);
}

void ls_stale_free(ls_exchange *x)
{
	ls_stale *s = x->stale;
	if (!s)
		return;
	for (int w = 0; s->reply && w < s->workers; w++)
		ls_floats_free(s->reply[w], x->own);
	for (int b = 0; s->bucket && b < x->plan.buckets; b++) {
		free(s->bucket[b].served);
		free(s->bucket[b].waiting);
	}
	free(s->held);
	free(s->reply);
	free(s->bucket);
	free(s);
}

void ls_stale_expect(ls_exchange *x)
{
	for (int b = 0; b < x->plan.buckets; b++)
		for (int w = 0; w < x->workers && x->bucket[b].begin < x->bucket[b].end; w++)
			ls_exchange_expect_partial(x, b, w, w, w);
}

static void start_next(ls_exchange *x, int bucket)
{
	ls_stale_bucket *s = &x->stale->bucket[bucket];
	if (s->worker >= 0 || s->count == 0)
		return;
	s->worker = s->waiting[s->first];
	s->first = (s->first + 1) % x->workers;
	s->count--;
	ls_exchange_publish_shard(x, bucket);
}

void ls_stale_came(ls_exchange *x, int bucket, int worker)
{
	ls_stale_bucket *s = &x->stale->bucket[bucket];
	s->waiting[(s->first + s->count++) % x->workers] = worker;
	start_next(x, bucket);
}

static uint64_t slowest(const ls_exchange *x, int bucket)
{
	uint64_t least = UINT64_MAX;
	for (int w = 0; w < x->workers; w++) {
		uint64_t served = atomic_load(&x->stale->bucket[bucket].served[w]);
		least = served < least ? served : least;
	}
	return least;
}

/* Answers to extra floats that the slowest worker holds up no longer. A worker that has been served n rounds waits for
 * the answer to round n - 1. */
static void grant(ls_exchange *x, int extra)
{
	uint64_t least = slowest(x, extra);
	for (int w = 0; w < x->workers; w++) {
		uint64_t served = atomic_load(&x->stale->bucket[extra].served[w]);
		if (!x->stale->held[w] || least + (uint64_t)x->o.staleness < served + 1)
			continue;
		x->stale->held[w] = 0;
		ls_exchange_answer(x, extra, w, x->stale->reply[w] + x->bucket[extra].own_offset);
	}
}

void ls_stale_applied(ls_exchange *x, int bucket)
{
	ls_stale_bucket *s = &x->stale->bucket[bucket];
	const ls_bucket_state *b = &x->bucket[bucket];
	int worker = s->worker, extra = x->plan.buckets - 1;
	float *reply = x->stale->reply[worker] + b->own_offset;

	memcpy(reply, ls_exchange_value_at(x, b->begin), ls_exchange_value_count(x, b->begin, b->end) * sizeof(float));
	s->worker = -1;
	s->updates++;
	atomic_fetch_add(&s->served[worker], 1);
	ls_exchange_expect_partial(x, bucket, worker, worker, worker);
	if (bucket == extra) {
		x->stale->held[worker] = 1;
		grant(x, extra);
	} else {
		ls_exchange_answer(x, bucket, worker, reply);
	}
	start_next(x, bucket);
}

int ls_stale_is_served(const ls_exchange *x, uint64_t steps)
{
	for (int b = 0; b < x->plan.buckets; b++)
		if (x->bucket[b].begin < x->bucket[b].end && slowest(x, b) < steps)
			return 0;
	return 1;
}
