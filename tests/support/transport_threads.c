/*
 * transport_threads.c - ranks are threads of one process.
 *
 * For tests of everything above a transport: no network, no processes, and no order that happens by chance to be the
 * right one, for finished operations are handed out shuffled.
 *
 * All ranks share a hub behind one lock. For each pair of ranks it keeps the sends and the receives that have not
 * found each other yet, in the order they were started. Whoever starts the second of two that match copies the data,
 * and both are done: a send is never done before its receive is there, as with MPI's large messages, so that code which
 * relies on buffered sends hangs here rather than on a cluster.
 *
 * Invariants
 *  1. Everything behind `hub` is read and written under its lock; buffers are touched under it, too.
 *  2. A slot is free, waiting (in exactly one list, or in a sum) or done (in its rank's `done`, once).
 *  3. The k-th sums of all ranks are one sum. A rank's sums are done in order, so sum k's place in the ring of `slots`
 *     is free when any rank starts sum k + slots.
 *  4. Nothing is allocated after ls_threads_transports().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "support/transport_threads.h"

typedef struct operation {
	int waiting, receives;
	int rank, slot, tag;
	void *buffer;
	size_t bytes;
	size_t *arrived;        /* a receive that may be shorter: how long it was */
	struct operation *next; /* in its list */
} operation;

typedef struct waiting_list {
	operation *first, **end;
} waiting_list;

/* What one rank has on its way to another. */
typedef struct pair {
	waiting_list sends, receives;
} pair;

typedef struct sum_place {
	int arrived;
	size_t count;
	float **values; /* (size) by rank */
	int *slot;      /* (size) */
} sum_place;

typedef struct hub hub;

typedef struct rank_transport {
	ls_transport base;
	hub *hub;
	pthread_cond_t event;
	int eventful;          /* something happened since the last nap */
	operation *operations; /* (slots) */
	int *done;             /* (slots) finished, not yet reported */
	int done_count;
	unsigned long long sums, draws;
	ls_status status;
	char message[256];
} rank_transport;

struct hub {
	pthread_mutex_t lock;
	int size, slots, users;
	unsigned long long seed;
	rank_transport *ranks; /* (size) */
	pair *pairs;           /* (size * size): from * size + to */
	sum_place *sums;       /* (slots): a ring */
	operation *operations; /* what the ranks' pointers point into */
	int *numbers;
	float **values;
};

static void list_init(waiting_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_append(waiting_list *list, operation *o)
{
	o->next = NULL;
	*list->end = o;
	list->end = &o->next;
}

static void list_unlink(waiting_list *list, operation **link)
{
	operation *o = *link;
	*link = o->next;
	if (list->end == &o->next)
		list->end = link;
}

/* The first with this tag, taken out; NULL when there is none. */
static operation *list_take(waiting_list *list, int tag)
{
	for (operation **link = &list->first; *link; link = &(*link)->next) {
		operation *o = *link;
		if (o->tag == tag) {
			list_unlink(list, link);
			return o;
		}
	}
	return NULL;
}

static void happen(rank_transport *r)
{
	r->eventful = 1;
	pthread_cond_signal(&r->event);
}

static void finish(rank_transport *r, int slot)
{
	r->operations[slot].waiting = 0;
	r->done[r->done_count++] = slot;
	happen(r);
}

static void refuse(rank_transport *r, const operation *send, const operation *receive)
{
	if (r->status)
		return;
	r->status = ls_fail(LS_EMISMATCH, "node %d sent %zu bytes with tag %#x to node %d, which expects %zu",
			    send->rank, send->bytes, (unsigned)send->tag, receive->rank, receive->bytes);
	snprintf(r->message, sizeof(r->message), "%s", ls_last_error());
	happen(r);
}

static void deliver(hub *h, operation *send, operation *receive)
{
	rank_transport *to = &h->ranks[receive->rank];
	if (send->bytes == receive->bytes || (receive->arrived && send->bytes < receive->bytes)) {
		if (send->bytes)
			memcpy(receive->buffer, send->buffer, send->bytes);
		if (receive->arrived)
			*receive->arrived = send->bytes;
		finish(to, receive->slot);
	} else {
		refuse(to, send, receive);
	}
	finish(&h->ranks[send->rank], send->slot);
}

static ls_status check(const rank_transport *r, int slot, int peer)
{
	if (slot < 0 || slot >= r->base.slots || r->operations[slot].waiting)
		return ls_fail(LS_EINVALID, "slot %d of %d is not free", slot, r->base.slots);
	if (peer < 0 || peer >= r->base.size)
		return ls_fail(LS_EINVALID, "there is no node %d among %d", peer, r->base.size);
	return LS_OK;
}

static ls_status start(rank_transport *r, pair *between, operation o)
{
	operation *mine = &r->operations[o.slot];
	hub *h = r->hub;
	pthread_mutex_lock(&h->lock);
	*mine = o;
	operation *other = list_take(o.receives ? &between->sends : &between->receives, o.tag);
	if (!other)
		list_append(o.receives ? &between->receives : &between->sends, mine);
	else if (o.receives)
		deliver(h, other, mine);
	else
		deliver(h, mine, other);
	pthread_mutex_unlock(&h->lock);
	return LS_OK;
}

static ls_status threads_send(ls_transport *transport, int slot, int peer, int tag, const void *buffer, size_t bytes)
{
	rank_transport *r = (rank_transport *)transport;
	LS_TRY(check(r, slot, peer));
	operation o = { .waiting = 1, .rank = transport->rank, .slot = slot, .tag = tag };
	memcpy(&o.buffer, &buffer, sizeof(buffer)); /* a send's buffer is only read */
	o.bytes = bytes;
	return start(r, &r->hub->pairs[transport->rank * transport->size + peer], o);
}

static ls_status threads_receive(ls_transport *transport, int slot, int peer, int tag, void *buffer, size_t bytes,
				 size_t *arrived)
{
	rank_transport *r = (rank_transport *)transport;
	LS_TRY(check(r, slot, peer));
	operation o = { .waiting = 1, .receives = 1, .rank = transport->rank, .slot = slot, .tag = tag };
	o.buffer = buffer;
	o.bytes = bytes;
	o.arrived = arrived;
	return start(r, &r->hub->pairs[peer * transport->size + transport->rank], o);
}

/* In rank order, whatever the order of arrival: the same bits every time. */
static void add_up(hub *h, sum_place *place)
{
	for (size_t i = 0; i < place->count; i++) {
		float total = place->values[0][i];
		for (int rank = 1; rank < h->size; rank++)
			total += place->values[rank][i];
		for (int rank = 0; rank < h->size; rank++)
			place->values[rank][i] = total;
	}
	for (int rank = 0; rank < h->size; rank++) {
		place->values[rank] = NULL;
		finish(&h->ranks[rank], place->slot[rank]);
	}
	place->arrived = 0;
}

static ls_status join_sum(rank_transport *r, int slot, float *values, size_t count)
{
	hub *h = r->hub;
	sum_place *place = &h->sums[r->sums % (unsigned)h->slots];
	if (place->arrived > 0 && place->count != count)
		return ls_fail(LS_EMISMATCH, "node %d adds %zu values to sum %llu, others %zu", r->base.rank, count,
			       r->sums, place->count);
	r->operations[slot] = (operation){ .waiting = 1, .rank = r->base.rank, .slot = slot };
	r->sums++;
	place->count = count;
	place->values[r->base.rank] = values;
	place->slot[r->base.rank] = slot;
	if (++place->arrived == h->size)
		add_up(h, place);
	return LS_OK;
}

static ls_status threads_sum(ls_transport *transport, int slot, float *values, size_t count)
{
	rank_transport *r = (rank_transport *)transport;
	LS_TRY(check(r, slot, transport->rank));
	pthread_mutex_lock(&r->hub->lock);
	ls_status status = join_sum(r, slot, values, count);
	pthread_mutex_unlock(&r->hub->lock);
	return status;
}

static int take_done(rank_transport *r)
{
	uint64_t draw = ls_mix64(r->hub->seed + ls_mix64(r->draws++ * (unsigned)r->hub->size + (unsigned)r->base.rank));
	int chosen = (int)(draw % (unsigned)r->done_count);
	int slot = r->done[chosen];
	r->done[chosen] = r->done[--r->done_count];
	return slot;
}

static ls_status threads_poll(ls_transport *transport, int *slots, int most, int *count)
{
	rank_transport *r = (rank_transport *)transport;
	int found = 0;
	pthread_mutex_lock(&r->hub->lock);
	ls_status status = r->status;
	while (!status && found < most && r->done_count > 0)
		slots[found++] = take_done(r);
	pthread_mutex_unlock(&r->hub->lock);
	if (status)
		return ls_fail(status, "%s", r->message);
	*count = found;
	return LS_OK;
}

static struct timespec time_after(double seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	double whole = (double)(long)seconds;
	t.tv_sec += (time_t)whole;
	t.tv_nsec += (long)((seconds - whole) * 1e9);
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static void threads_nap(ls_transport *transport, double seconds)
{
	rank_transport *r = (rank_transport *)transport;
	struct timespec end = time_after(seconds);
	pthread_mutex_lock(&r->hub->lock);
	while (!r->eventful && pthread_cond_timedwait(&r->event, &r->hub->lock, &end) == 0)
		;
	r->eventful = 0;
	pthread_mutex_unlock(&r->hub->lock);
}

static void threads_wake(ls_transport *transport)
{
	rank_transport *r = (rank_transport *)transport;
	pthread_mutex_lock(&r->hub->lock);
	happen(r);
	pthread_mutex_unlock(&r->hub->lock);
}

static void forget(waiting_list *list, int rank)
{
	for (operation **link = &list->first; *link;) {
		if ((*link)->rank == rank)
			list_unlink(list, link);
		else
			link = &(*link)->next;
	}
}

/* A sum this rank has joined will never be complete: it keeps `arrived` below size, for this rank joins no more. */
static void forget_sums(hub *h, int rank)
{
	for (int i = 0; i < h->slots; i++) {
		if (h->sums[i].arrived > 0 && h->sums[i].values[rank])
			h->sums[i].arrived = -h->size;
	}
}

static void threads_abandon(ls_transport *transport)
{
	rank_transport *r = (rank_transport *)transport;
	hub *h = r->hub;
	pthread_mutex_lock(&h->lock);
	for (int i = 0; i < h->size * h->size; i++) {
		forget(&h->pairs[i].sends, transport->rank);
		forget(&h->pairs[i].receives, transport->rank);
	}
	forget_sums(h, transport->rank);
	pthread_mutex_unlock(&h->lock);
}

static void hub_free(hub *h)
{
	for (int rank = 0; h->ranks && rank < h->size; rank++)
		pthread_cond_destroy(&h->ranks[rank].event);
	pthread_mutex_destroy(&h->lock);
	free(h->values);
	free(h->numbers);
	free(h->operations);
	free(h->sums);
	free(h->pairs);
	free(h->ranks);
	free(h);
}

static ls_status threads_free(ls_transport *transport)
{
	hub *h = ((rank_transport *)transport)->hub;
	threads_abandon(transport);
	pthread_mutex_lock(&h->lock);
	int left = --h->users;
	pthread_mutex_unlock(&h->lock);
	if (left == 0)
		hub_free(h);
	return LS_OK;
}

static const ls_transport_ops threads_ops = {
	.name = "threads",
	.summary = "nodes are threads of one process, for tests",
	.send = threads_send,
	.receive = threads_receive,
	.sum = threads_sum,
	.poll = threads_poll,
	.nap = threads_nap,
	.wake = threads_wake,
	.abandon = threads_abandon,
	.free = threads_free,
};

static void rank_init(hub *h, int rank)
{
	rank_transport *r = &h->ranks[rank];
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->event, &attributes);
	pthread_condattr_destroy(&attributes);
	r->base = (ls_transport){ .ops = &threads_ops, .rank = rank, .size = h->size, .slots = h->slots };
	r->hub = h;
	r->operations = h->operations + (size_t)rank * (size_t)h->slots;
	r->done = h->numbers + (size_t)rank * (size_t)h->slots;
}

static hub *hub_new(int size, int slots)
{
	size_t ranks = (size_t)size, all = ranks * (size_t)slots;
	hub *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	h->size = h->users = size;
	h->slots = slots;
	h->pairs = calloc(ranks * ranks, sizeof(*h->pairs));
	h->sums = calloc((size_t)slots, sizeof(*h->sums));
	h->operations = calloc(all, sizeof(*h->operations));
	h->numbers = calloc(2 * all, sizeof(*h->numbers));
	h->values = calloc(all, sizeof(*h->values));
	if (h->pairs && h->sums && h->operations && h->numbers && h->values)
		h->ranks = calloc(ranks, sizeof(*h->ranks));
	if (!h->ranks) {
		hub_free(h);
		return NULL;
	}
	return h;
}

ls_status ls_threads_transports(ls_transport **transports, int size, int slots, unsigned long long seed)
{
	if (size < 1 || slots < 1)
		return ls_fail(LS_EINVALID, "%d nodes with %d slots: both must be at least 1", size, slots);
	hub *h = hub_new(size, slots);
	if (!h)
		return ls_fail(LS_EMEMORY, "not enough memory for %d nodes with %d slots", size, slots);
	h->seed = ls_mix64(seed);
	for (int i = 0; i < size * size; i++) {
		list_init(&h->pairs[i].sends);
		list_init(&h->pairs[i].receives);
	}
	for (int i = 0; i < slots; i++) {
		h->sums[i].values = h->values + (size_t)i * (size_t)size;
		h->sums[i].slot = h->numbers + ((size_t)size * (size_t)slots + (size_t)i * (size_t)size);
	}
	for (int rank = 0; rank < size; rank++) {
		rank_init(h, rank);
		transports[rank] = &h->ranks[rank].base;
	}
	return LS_OK;
}
