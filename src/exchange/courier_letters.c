/*
 * courier_letters.c - which letter is started when.
 *
 * Slots of the transport are divided once. Each peer has three for heartbeats; a few are for sums; of the rest a
 * quarter is for outgoing letters, the same number for every peer, and the others for incoming ones. So a peer that
 * takes nothing holds up its own letters alone.
 *
 * A peer's queue of outgoing letters is kept in the order they will be started: a letter goes before all that are less
 * urgent, but behind those with its tag. Its head is started while the window has room; costs a walk over the queue a
 * letter posted.
 */
#include <assert.h>

#include "base/clock.h"
#include "exchange/courier_state.h"

/* Sums under way at once: enough to keep the wire busy between two of them. */
enum { SUMS = 4 };

void ls_letter_list_init(ls_letter_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

void ls_letter_list_append(ls_letter_list *list, ls_letter *letter)
{
	letter->next = NULL;
	*list->end = letter;
	list->end = &letter->next;
}

static ls_letter *list_take(ls_letter_list *list)
{
	ls_letter *letter = list->first;
	list->first = letter->next;
	if (!list->first)
		list->end = &list->first;
	return letter;
}

int ls_courier_slots_least(int size)
{
	return (LS_SLOTS_A_PEER + 2) * size + SUMS;
}

int ls_courier_slots(int size, int incoming)
{
	int by_quarter = incoming + incoming / 3 + 2, by_peer = incoming + size;
	int slots = LS_SLOTS_A_PEER * size + SUMS + (by_quarter > by_peer ? by_quarter : by_peer);
	return slots > ls_courier_slots_least(size) ? slots : ls_courier_slots_least(size);
}

static int pool_init(ls_slot_pool *pool, int *slots, int first, int count)
{
	*pool = (ls_slot_pool){ .slots = slots + first, .count = count };
	for (int i = 0; i < count; i++)
		slots[first + i] = first + count - 1 - i;
	return first + count;
}

int ls_courier_incoming(const ls_courier *courier)
{
	return courier->most_incoming;
}

void ls_courier_divide_slots(ls_courier *courier)
{
	int fixed = LS_SLOTS_A_PEER * courier->size, all = courier->transport->slots;
	int rest = all - fixed - SUMS;
	int outgoing = rest / 4 > courier->size ? rest / 4 : courier->size;
	int next = pool_init(&courier->sum_slots, courier->slot_numbers, fixed, SUMS);
	next = pool_init(&courier->outgoing_slots, courier->slot_numbers, next, outgoing);
	pool_init(&courier->incoming_slots, courier->slot_numbers, next, all - next);
	courier->most_outgoing = outgoing / courier->size;
	courier->most_incoming = all - next;
}

static ls_slot_pool *pool_of(ls_courier *courier, const ls_letter *letter)
{
	return letter->outgoing == 2 ? &courier->sum_slots
	       : letter->outgoing    ? &courier->outgoing_slots
				     : &courier->incoming_slots;
}

static void queue_outgoing(ls_courier_peer *peer, ls_letter *letter)
{
	ls_letter **place = &peer->outgoing, **link = &peer->outgoing;
	int found = 0; /* the first that is less urgent */
	for (; *link; link = &(*link)->next) {
		if (!found && (*link)->urgency > letter->urgency) {
			place = link;
			found = 1;
		}
		if ((*link)->tag == letter->tag)
			found = 0; /* only behind it */
	}
	if (!found)
		place = link;
	letter->next = *place;
	*place = letter;
}

void ls_courier_queue(ls_courier *courier, ls_letter *letter)
{
	letter->slot = -1;
	if (letter->outgoing == 2) {
		ls_letter_list_append(&courier->sums, letter);
	} else if (letter->outgoing) {
		queue_outgoing(&courier->peers[letter->peer], letter);
		courier->outgoing_left++;
	} else {
		ls_letter_list_append(&courier->incoming, letter);
	}
}

static ls_status transport_start(ls_transport *t, ls_letter *l)
{
	if (l->outgoing == 2 && !t->ops->sum)
		return ls_fail(LS_EUNSUPPORTED, "the transport '%s' has no sums of its own", t->ops->name);
	if (l->outgoing == 2)
		return t->ops->sum(t, l->slot, l->buffer, l->bytes / sizeof(float));
	if (l->outgoing)
		return t->ops->send(t, l->slot, l->peer, l->tag, l->buffer, l->bytes);
	return t->ops->receive(t, l->slot, l->peer, l->tag, l->buffer, l->bytes, l->shorter ? &l->arrived : NULL);
}

static ls_status start(ls_courier *courier, ls_letter *letter)
{
	ls_slot_pool *pool = pool_of(courier, letter);
	letter->slot = pool->slots[--pool->count];
	letter->started = ls_clock_seconds();
	courier->under_way[letter->slot] = letter;
	courier->letters++;
	if (letter->outgoing == 1) {
		courier->peers[letter->peer].bytes += letter->bytes;
		courier->peers[letter->peer].letters++;
	}
	return transport_start(courier->transport, letter);
}

static ls_status start_list(ls_courier *courier, ls_letter_list *list, const ls_slot_pool *pool, int *started)
{
	while (list->first && pool->count > 0) {
		LS_TRY(start(courier, list_take(list)));
		*started = 1;
	}
	return LS_OK;
}

/* One letter always may, however large. */
static int has_room(const ls_courier *courier, const ls_courier_peer *peer)
{
	size_t window = courier->window ? courier->window : ls_window_bytes(&peer->window, courier->size - 1);
	return peer->letters == 0 ||
	       (peer->letters < courier->most_outgoing && peer->bytes + peer->outgoing->bytes <= window);
}

/* The peer whose next letter is the most urgent of those that may start; NULL when there is none. From the next node
 * on, so that not all begin with the same one. */
static ls_courier_peer *most_urgent(const ls_courier *courier)
{
	ls_courier_peer *best = NULL;
	for (int i = 1; i <= courier->size; i++) {
		ls_courier_peer *peer = &courier->peers[(courier->rank + i) % courier->size];
		if (peer->outgoing && has_room(courier, peer) &&
		    (!best || peer->outgoing->urgency < best->outgoing->urgency))
			best = peer;
	}
	return best;
}

ls_status ls_courier_start_letters(ls_courier *courier, int *started)
{
	LS_TRY(start_list(courier, &courier->incoming, &courier->incoming_slots, started));
	LS_TRY(start_list(courier, &courier->sums, &courier->sum_slots, started));
	for (ls_courier_peer *peer; (peer = most_urgent(courier));) {
		ls_letter *letter = peer->outgoing;
		peer->outgoing = letter->next;
		LS_TRY(start(courier, letter));
		*started = 1;
	}
	return LS_OK;
}

static void count(ls_courier_peer *peer, const ls_letter *letter)
{
	int received = !letter->outgoing;
	size_t bytes = received && letter->shorter ? letter->arrived : letter->bytes;
	atomic_fetch_add_explicit(&peer->traffic[received], bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&peer->traffic[2 + received], 1, memory_order_relaxed);
}

ls_letter *ls_courier_take_letter(ls_courier *courier, int slot)
{
	ls_letter *letter = courier->under_way[slot];
	assert(letter);
	ls_slot_pool *pool = pool_of(courier, letter);
	pool->slots[pool->count++] = slot;
	courier->under_way[slot] = NULL;
	courier->letters--;
	if (letter->outgoing == 2)
		return letter;
	ls_courier_peer *peer = &courier->peers[letter->peer];
	if (letter->outgoing) {
		peer->bytes -= letter->bytes;
		peer->letters--;
		courier->outgoing_left--;
	} else {
		peer->heard = courier->now;
		ls_window_arrived(&peer->window, letter->shorter ? letter->arrived : letter->bytes, courier->now);
	}
	if (letter->tag < LS_TAG_ALIVE)
		count(peer, letter);
	return letter;
}

/* Of two posted together, the one that is waited for. */
static const ls_letter *older(const ls_letter *a, const ls_letter *b, int peer)
{
	if (b->peer != peer && b->outgoing != 2)
		return a;
	return !a || b->posted < a->posted || (b->posted == a->posted && !b->outgoing) ? b : a;
}

const ls_letter *ls_courier_oldest(const ls_courier *courier, int peer)
{
	const ls_letter *oldest = NULL;
	for (int slot = 0; slot < courier->transport->slots; slot++) {
		if (courier->under_way[slot])
			oldest = older(oldest, courier->under_way[slot], peer);
	}
	for (const ls_letter *l = courier->incoming.first; l; l = l->next)
		oldest = older(oldest, l, peer);
	for (const ls_letter *l = courier->sums.first; l; l = l->next)
		oldest = older(oldest, l, peer);
	for (const ls_letter *l = courier->peers[peer].outgoing; l; l = l->next)
		oldest = older(oldest, l, peer);
	return oldest;
}
