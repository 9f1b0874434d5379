/*
 * send_slot.c - messages between nodes, and which goes first.
 *
 * Reduce-scatter and all-gather of a bucket have tags of their own, so that messages of a bucket from one node to
 * another arrive in the order they are sent: a node's partial sums first to last, then the next step's. The urgency of
 * either is the bucket's place in forward order: what the next forward pass reads first goes first, be it a partial sum
 * or new values.
 *
 * But nothing goes before what belongs to an older step, or nodes would wait for each other in a circle: a node takes
 * no partial sum of a step that it has not begun, a partial sum that is not taken fills the window, and what is behind
 * it may be the very values that the node must have to begin. With older steps first that cannot be, for all messages
 * of a step have been posted, by all nodes, before any node posts one of the next: its first are partial sums, and a
 * node that sends these has all new values of the step before, be it for its forward pass or, those of step statistics,
 * because it waits for them. In ps-async every message is expected before it is posted: a server always expects a
 * worker's next partial sum, a worker the answers to all it has sent.
 */
#include "exchange/send_slot.h"

#include <stdlib.h>
#include <unistd.h>

#include "exchange/exchange_internal.h"

ls_send_slot *ls_send_slots_new(ls_exchange *x, size_t count, const ls_message *sample)
{
	ls_send_slot *slots = calloc(count + 1, sizeof(*slots));
	for (size_t i = 0; slots && i < count; i++) {
		slots[i].message = *sample;
		slots[i].message.context = &slots[i];
		slots[i].exchange = x;
	}
	return slots;
}

void ls_send_slot_address(ls_send_slot *slot, int bucket, int peer, int tag)
{
	slot->bucket = bucket;
	slot->node = slot->message.peer = peer;
	slot->message.tag = tag;
	slot->message.number = bucket;
	/* Step statistics are few and no forward pass needs them, so they would wait for as long as the wire is busy;
	 * but no node sends partial sums before the statistics of the last step are here. So they go first. */
	slot->rank = ls_exchange_is_statistics(slot->exchange, bucket) ? -1 : bucket;
}

static void start(ls_send_slot *slot, ls_send_load load)
{
	slot->message.urgency = (int64_t)load.step * (LS_BUCKETS_MAX + 2) + slot->rank;
	slot->message.buffer = load.buffer;
	slot->message.bytes = load.bytes;
	ls_comm_post(slot->exchange->o.comm, &slot->message);
}

void ls_send_slot_post(ls_send_slot *slot, ls_send_load load)
{
	for (;;) {
		int is_free = 0, under_way = 1;
		if (atomic_compare_exchange_strong(&slot->state, &is_free, 1)) {
			start(slot, load);
			return;
		}
		slot->next = load;
		if (atomic_compare_exchange_strong(&slot->state, &under_way, 2) || under_way == 2)
			return; /* posted twice only when a failed communication thread completes nothing any more */
	}
}

void ls_send_slot_done(ls_send_slot *slot)
{
	int under_way = 1;
	if (atomic_compare_exchange_strong(&slot->state, &under_way, 0))
		return;
	ls_send_load next = slot->next;
	atomic_store(&slot->state, 1);
	start(slot, next);
}

void ls_send_slots_await(ls_send_slot *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		while (atomic_load(&slots[i].state) != 0 && !ls_comm_has_failed(slots[i].exchange->o.comm))
			usleep(20);
}
