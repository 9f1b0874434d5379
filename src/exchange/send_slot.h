/*
 * send_slot.h - a persistent message: posted again every step, maybe before the communication thread has noticed that
 * the last one arrived.
 */
#ifndef LS_EXCHANGE_SEND_SLOT_H
#define LS_EXCHANGE_SEND_SLOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/comm.h"

struct ls_exchange;

/* Tags: two per bucket, then one for norms. */
enum { LS_TAG_REDUCE_SCATTER = 0, LS_TAG_ALL_GATHER = 1, LS_TAG_NORMS = LS_TAG_COLLECT - 1 };
enum { LS_BUCKETS_MAX = LS_TAG_NORMS / 2 };

/* What a message carries, and the step it belongs to. */
typedef struct ls_send_load {
	void *buffer;
	size_t bytes;
	uint64_t step;
} ls_send_load;

typedef struct ls_send_slot {
	ls_message message;
	struct ls_exchange *exchange;
	_Atomic(int) state; /* 0: free, 1: under way, 2: under way and posted again */
	ls_send_load next;  /* what it carries then */
	size_t packed;      /* reduce-scatter: bytes its partial sum has */
	int bucket, node;
	int rank; /* within a step: the bucket's place in the forward pass */
} ls_send_slot;

/* `count` copies of a sample message; NULL: no memory. */
ls_send_slot *ls_send_slots_new(struct ls_exchange *x, size_t count, const ls_message *sample);
void ls_send_slot_address(ls_send_slot *slot, int bucket, int peer, int tag);

/* Send or receive, at once or when the last one is done. */
void ls_send_slot_post(ls_send_slot *slot, ls_send_load load);
/* By the message's `done`: the slot is free, or starts what was posted meanwhile. */
void ls_send_slot_done(ls_send_slot *slot);
/* Wait until the slots are free, or the communication thread has failed. Not under the lock: `done` may want it. */
void ls_send_slots_await(ls_send_slot *slots, size_t count);

#endif
