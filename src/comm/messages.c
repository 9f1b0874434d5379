/*
 * messages.c - which message is started when.
 *
 * Slots of the transport are divided once. Each peer has three for heartbeats; a few are for sums; of the rest a
 * quarter is for outgoing messages, the same number for every peer, and the others for incoming ones. So a peer that
 * takes nothing holds up its own messages alone.
 *
 * A peer's queue of outgoing messages is kept in the order they will be started: a message goes before all that are
 * less urgent, but behind those with its tag. Its head is started while the window has room; posting a message costs a
 * walk over the queue.
 */
#include <assert.h>

#include "base/clock.h"
#include "comm/comm_state.h"

/* Sums under way at once: enough to keep the wire busy between two of them. */
enum { SUMS = 4 };

void ls_message_list_init(ls_message_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

void ls_message_list_append(ls_message_list *list, ls_message *message)
{
	message->next = NULL;
	*list->end = message;
	list->end = &message->next;
}

static ls_message *list_take(ls_message_list *list)
{
	ls_message *message = list->first;
	list->first = message->next;
	if (!list->first)
		list->end = &list->first;
	return message;
}

int ls_comm_slots_least(int size)
{
	return (LS_SLOTS_PER_PEER + 2) * size + SUMS;
}

int ls_comm_slots(int size, int incoming)
{
	int by_quarter = incoming + incoming / 3 + 2, by_peer = incoming + size;
	int slots = LS_SLOTS_PER_PEER * size + SUMS + (by_quarter > by_peer ? by_quarter : by_peer);
	return slots > ls_comm_slots_least(size) ? slots : ls_comm_slots_least(size);
}

static int pool_init(ls_slot_pool *pool, int *slots, int first, int count)
{
	*pool = (ls_slot_pool){ .slots = slots + first, .count = count };
	for (int i = 0; i < count; i++)
		slots[first + i] = first + count - 1 - i;
	return first + count;
}

int ls_comm_incoming(const ls_comm *comm)
{
	return comm->most_incoming;
}

void ls_comm_divide_slots(ls_comm *comm)
{
	int fixed = LS_SLOTS_PER_PEER * comm->size, all = comm->transport->slots;
	int rest = all - fixed - SUMS;
	int outgoing = rest / 4 > comm->size ? rest / 4 : comm->size;
	int next = pool_init(&comm->sum_slots, comm->slot_numbers, fixed, SUMS);
	next = pool_init(&comm->outgoing_slots, comm->slot_numbers, next, outgoing);
	pool_init(&comm->incoming_slots, comm->slot_numbers, next, all - next);
	comm->most_outgoing = outgoing / comm->size;
	comm->most_incoming = all - next;
}

static ls_slot_pool *pool_of(ls_comm *comm, const ls_message *message)
{
	return message->outgoing == 2 ? &comm->sum_slots
	       : message->outgoing    ? &comm->outgoing_slots
				      : &comm->incoming_slots;
}

static void queue_outgoing(ls_comm_peer *peer, ls_message *message)
{
	ls_message **place = &peer->outgoing, **link = &peer->outgoing;
	int found = 0; /* the first that is less urgent */
	for (; *link; link = &(*link)->next) {
		if (!found && (*link)->urgency > message->urgency) {
			place = link;
			found = 1;
		}
		if ((*link)->tag == message->tag)
			found = 0; /* only behind it */
	}
	if (!found)
		place = link;
	message->next = *place;
	*place = message;
}

void ls_comm_queue(ls_comm *comm, ls_message *message)
{
	message->slot = -1;
	if (message->outgoing == 2) {
		ls_message_list_append(&comm->sums, message);
	} else if (message->outgoing) {
		queue_outgoing(&comm->peers[message->peer], message);
		comm->outgoing_left++;
	} else {
		ls_message_list_append(&comm->incoming, message);
	}
}

static ls_status transport_start(ls_transport *t, ls_message *l)
{
	if (l->outgoing == 2 && !t->ops->sum)
		return ls_fail(LS_EUNSUPPORTED, "the transport '%s' has no sums of its own", t->ops->name);
	if (l->outgoing == 2)
		return t->ops->sum(t, l->slot, l->buffer, l->bytes / sizeof(float));
	if (l->outgoing)
		return t->ops->send(t, l->slot, l->peer, l->tag, l->buffer, l->bytes);
	return t->ops->receive(t, l->slot, l->peer, l->tag, l->buffer, l->bytes, l->shorter ? &l->arrived : NULL);
}

static ls_status start(ls_comm *comm, ls_message *message)
{
	ls_slot_pool *pool = pool_of(comm, message);
	message->slot = pool->slots[--pool->count];
	message->started = ls_clock_seconds();
	comm->under_way[message->slot] = message;
	comm->messages++;
	if (message->outgoing == 1) {
		comm->peers[message->peer].bytes += message->bytes;
		comm->peers[message->peer].messages++;
	}
	return transport_start(comm->transport, message);
}

static ls_status start_list(ls_comm *comm, ls_message_list *list, const ls_slot_pool *pool, int *started)
{
	while (list->first && pool->count > 0) {
		LS_TRY(start(comm, list_take(list)));
		*started = 1;
	}
	return LS_OK;
}

/* One message always may, however large. */
static int has_room(const ls_comm *comm, const ls_comm_peer *peer)
{
	size_t window = comm->window ? comm->window : ls_window_bytes(&peer->window, comm->size - 1);
	return peer->messages == 0 ||
	       (peer->messages < comm->most_outgoing && peer->bytes + peer->outgoing->bytes <= window);
}

/* The peer whose next message is the most urgent of those that may start; NULL when there is none. From the next node
 * on, so that not all begin with the same one. */
static ls_comm_peer *most_urgent(const ls_comm *comm)
{
	ls_comm_peer *best = NULL;
	for (int i = 1; i <= comm->size; i++) {
		ls_comm_peer *peer = &comm->peers[(comm->rank + i) % comm->size];
		if (peer->outgoing && has_room(comm, peer) &&
		    (!best || peer->outgoing->urgency < best->outgoing->urgency))
			best = peer;
	}
	return best;
}

ls_status ls_comm_start_messages(ls_comm *comm, int *started)
{
	LS_TRY(start_list(comm, &comm->incoming, &comm->incoming_slots, started));
	LS_TRY(start_list(comm, &comm->sums, &comm->sum_slots, started));
	for (ls_comm_peer *peer; (peer = most_urgent(comm));) {
		ls_message *message = peer->outgoing;
		peer->outgoing = message->next;
		LS_TRY(start(comm, message));
		*started = 1;
	}
	return LS_OK;
}

static void count(ls_comm_peer *peer, const ls_message *message)
{
	int received = !message->outgoing;
	size_t bytes = received && message->shorter ? message->arrived : message->bytes;
	atomic_fetch_add_explicit(&peer->traffic[received], bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&peer->traffic[2 + received], 1, memory_order_relaxed);
}

ls_message *ls_comm_take_message(ls_comm *comm, int slot)
{
	ls_message *message = comm->under_way[slot];
	assert(message);
	ls_slot_pool *pool = pool_of(comm, message);
	pool->slots[pool->count++] = slot;
	comm->under_way[slot] = NULL;
	comm->messages--;
	if (message->outgoing == 2)
		return message;
	ls_comm_peer *peer = &comm->peers[message->peer];
	if (message->outgoing) {
		peer->bytes -= message->bytes;
		peer->messages--;
		comm->outgoing_left--;
	} else {
		peer->heard = comm->now;
		ls_window_arrived(&peer->window, message->shorter ? message->arrived : message->bytes, comm->now);
	}
	if (message->tag < LS_TAG_ALIVE)
		count(peer, message);
	return message;
}

/* Of two posted together, the one that is waited for. */
static const ls_message *older(const ls_message *a, const ls_message *b, int peer)
{
	if (b->peer != peer && b->outgoing != 2)
		return a;
	return !a || b->posted < a->posted || (b->posted == a->posted && !b->outgoing) ? b : a;
}

const ls_message *ls_comm_oldest(const ls_comm *comm, int peer)
{
	const ls_message *oldest = NULL;
	for (int slot = 0; slot < comm->transport->slots; slot++) {
		if (comm->under_way[slot])
			oldest = older(oldest, comm->under_way[slot], peer);
	}
	for (const ls_message *l = comm->incoming.first; l; l = l->next)
		oldest = older(oldest, l, peer);
	for (const ls_message *l = comm->sums.first; l; l = l->next)
		oldest = older(oldest, l, peer);
	for (const ls_message *l = comm->peers[peer].outgoing; l; l = l->next)
		oldest = older(oldest, l, peer);
	return oldest;
}
