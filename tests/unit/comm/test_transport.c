/*
 * The threads transport: what is sent arrives, in order for each pair and tag, when both sides are there; sums are in
 * rank order; naps end when something happens.
 */
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "support/transport_threads.h"
#include "unit/test_main.h"

enum { SEED = 20250211, RANKS_MAX = 7, SLOTS = 24, TAGS = 3, MESSAGES = 60, BYTES_MAX = 3000 };

static void transports_new(ls_transport **t, int size, int slots)
{
	assert_int_equal(ls_threads_transports(t, size, slots, SEED), LS_OK);
	for (int rank = 0; rank < size; rank++) {
		assert_int_equal(t[rank]->rank, rank);
		assert_int_equal(t[rank]->size, size);
		assert_int_equal(t[rank]->slots, slots);
	}
}

static void transports_free(ls_transport **t, int size)
{
	for (int rank = 0; rank < size; rank++)
		t[rank]->ops->free(t[rank]);
}

/* Done slots of one poll, as a bit set. */
static unsigned poll_bits(ls_transport *t)
{
	int slots[32], count = -1;
	unsigned bits = 0;
	assert_int_equal(t->ops->poll(t, slots, 32, &count), LS_OK);
	for (int i = 0; i < count; i++)
		bits |= 1u << slots[i];
	return bits;
}

static void send_int(ls_transport *t, int slot, int peer, int tag, const int *value)
{
	assert_int_equal(t->ops->send(t, slot, peer, tag, value, sizeof(*value)), LS_OK);
}

static void receive_int(ls_transport *t, int slot, int peer, int tag, int *value)
{
	assert_int_equal(t->ops->receive(t, slot, peer, tag, value, sizeof(*value), NULL), LS_OK);
}

static void a_send_waits_for_its_receive(void **state)
{
	(void)state;
	ls_transport *t[2];
	int sent = 42, got = 0;
	transports_new(t, 2, 8);
	send_int(t[0], 3, 1, 7, &sent);
	assert_int_equal(poll_bits(t[0]), 0);
	receive_int(t[1], 5, 0, 8, &got); /* another tag */
	assert_int_equal(poll_bits(t[0]) | poll_bits(t[1]), 0);
	receive_int(t[1], 6, 0, 7, &got);
	assert_int_equal(poll_bits(t[0]), 1u << 3);
	assert_int_equal(poll_bits(t[1]), 1u << 6);
	assert_int_equal(got, 42);
	assert_int_equal(poll_bits(t[0]) | poll_bits(t[1]), 0);
	transports_free(t, 2);
}

static void order_holds_within_a_tag(void **state)
{
	(void)state;
	ls_transport *t[2];
	int sent[6] = { 10, 20, 11, 21, 12, 22 }, got[6] = { 0 };
	transports_new(t, 2, 8);
	for (int i = 0; i < 3; i++)
		receive_int(t[1], i, 0, 1, &got[i]);
	for (int i = 0; i < 6; i++)
		send_int(t[0], i, 1, 1 + i % 2, &sent[i]);
	for (int i = 3; i < 6; i++)
		receive_int(t[1], i, 0, 2, &got[i]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(got[i], 10 + i);
		assert_int_equal(got[3 + i], 20 + i);
	}
	assert_int_equal(poll_bits(t[0]), 0x3f);
	assert_int_equal(poll_bits(t[1]), 0x3f);
	transports_free(t, 2);
}

static void other_lengths_are_refused(void **state)
{
	(void)state;
	ls_transport *t[2];
	int sent = 1, slots[4], count;
	char got[12];
	transports_new(t, 2, 4);
	send_int(t[0], 0, 1, 5, &sent);
	assert_int_equal(t[1]->ops->receive(t[1], 0, 0, 5, got, sizeof(got), NULL), LS_OK);
	assert_int_equal(t[1]->ops->poll(t[1], slots, 4, &count), LS_EMISMATCH);
	assert_string_equal(ls_last_error(), "node 0 sent 4 bytes with tag 0x5 to node 1, which expects 12");
	transports_free(t, 2);
}

/* Where the receiver asks for the length, it is an upper bound. */
static void shorter_ones_where_they_may_be(void **state)
{
	(void)state;
	ls_transport *t[2];
	int sent[3] = { 1, 2, 3 }, slots[4], count;
	int got[3][3] = { { 0 } };
	size_t arrived[3] = { 99, 99, 99 };
	transports_new(t, 2, 4);
	for (int i = 0; i < 3; i++) {
		size_t bytes = sizeof(int) * (size_t)(i == 0 ? 0 : i + 1); /* none, some, all */
		assert_int_equal(t[i % 2]->ops->send(t[i % 2], i, 1 - i % 2, 5, sent, bytes), LS_OK);
		assert_int_equal(
			t[1 - i % 2]->ops->receive(t[1 - i % 2], i, i % 2, 5, got[i], sizeof(got[i]), &arrived[i]),
			LS_OK);
		assert_int_equal(poll_bits(t[0]), 1u << i);
		assert_int_equal(poll_bits(t[1]), 1u << i);
		assert_int_equal(arrived[i], bytes);
	}
	assert_true(got[0][0] == 0 && got[1][1] == 2 && got[1][2] == 0 && got[2][2] == 3);
	assert_int_equal(t[0]->ops->send(t[0], 0, 1, 5, sent, 12), LS_OK);
	assert_int_equal(t[1]->ops->receive(t[1], 0, 0, 5, got[0], 8, &arrived[0]), LS_OK);
	assert_int_equal(t[1]->ops->poll(t[1], slots, 4, &count), LS_EMISMATCH);
	transports_free(t, 2);
}

static void bad_arguments(void **state)
{
	(void)state;
	ls_transport *t[2];
	int value = 0;
	assert_int_equal(ls_threads_transports(t, 0, 4, SEED), LS_EINVALID);
	assert_int_equal(ls_threads_transports(t, 2, 0, SEED), LS_EINVALID);
	transports_new(t, 2, 4);
	assert_int_equal(t[0]->ops->send(t[0], 4, 1, 0, &value, 4), LS_EINVALID);
	assert_int_equal(t[0]->ops->send(t[0], 0, 2, 0, &value, 4), LS_EINVALID);
	send_int(t[0], 0, 1, 0, &value);
	assert_int_equal(t[0]->ops->send(t[0], 0, 1, 0, &value, 4), LS_EINVALID);
	transports_free(t, 2);
}

static void done_slots_come_shuffled(void **state)
{
	(void)state;
	ls_transport *t[2];
	int values[16] = { 0 }, slots[16], count, in_order = 1;
	transports_new(t, 2, 16);
	for (int i = 0; i < 16; i++) {
		receive_int(t[1], i, 0, 0, &values[i]);
		send_int(t[0], i, 1, 0, &values[i]);
	}
	assert_int_equal(t[0]->ops->poll(t[0], slots, 16, &count), LS_OK);
	assert_int_equal(count, 16);
	for (int i = 0; i < 16; i++)
		in_order &= slots[i] == i;
	assert_false(in_order);
	transports_free(t, 2);
}

/* 1e8 and -1e8 with small numbers between: another order of adding gives another sum. */
static void sums_are_in_rank_order(void **state)
{
	(void)state;
	ls_transport *t[3];
	float value[3][2] = { { 1e8f, 1.0f }, { -1e8f, 2.0f }, { 0.5f, 4.0f } };
	float second[3] = { 1, 2, 3 };
	transports_new(t, 3, 4);
	for (int rank = 2; rank >= 0; rank--) {
		assert_int_equal(poll_bits(t[2]), 0);
		assert_int_equal(t[rank]->ops->sum(t[rank], 1, value[rank], 2), LS_OK);
		if (rank > 0)
			assert_int_equal(t[rank]->ops->sum(t[rank], 2, &second[rank], 1), LS_OK);
	}
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(poll_bits(t[rank]), 2);
		assert_true(value[rank][0] == 0.5f && value[rank][1] == 7.0f);
	}
	assert_int_equal(t[0]->ops->sum(t[0], 3, second, 2), LS_EMISMATCH);
	assert_int_equal(t[0]->ops->sum(t[0], 3, second, 1), LS_OK);
	assert_true(second[0] == 6.0f && second[2] == 6.0f);
	transports_free(t, 3);
}

static void what_was_abandoned_is_left_alone(void **state)
{
	(void)state;
	ls_transport *t[2];
	int sent = 9, got = 0;
	float mine = 1, other = 2;
	transports_new(t, 2, 4);
	receive_int(t[1], 0, 0, 0, &got);
	assert_int_equal(t[1]->ops->sum(t[1], 1, &mine, 1), LS_OK);
	t[1]->ops->abandon(t[1]);
	send_int(t[0], 0, 1, 0, &sent);
	assert_int_equal(t[0]->ops->sum(t[0], 1, &other, 1), LS_OK);
	assert_int_equal(poll_bits(t[0]), 0);
	assert_int_equal(got, 0);
	assert_true(mine == 1 && other == 2);
	transports_free(t, 2);
}

static void *wake_later(void *argument)
{
	ls_transport *t = argument;
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	t->ops->wake(t);
	return NULL;
}

static void naps_end(void **state)
{
	(void)state;
	ls_transport *t[2];
	int value = 1;
	pthread_t thread;
	transports_new(t, 2, 4);
	double begin = ls_clock_seconds();
	t[0]->ops->nap(t[0], 0.03); /* over */
	assert_true(ls_clock_seconds() - begin >= 0.03);
	assert_int_equal(pthread_create(&thread, NULL, wake_later, t[0]), 0);
	t[0]->ops->nap(t[0], 100); /* woken */
	pthread_join(thread, NULL);
	send_int(t[0], 0, 1, 0, &value);
	receive_int(t[1], 0, 0, 0, &value);
	t[0]->ops->nap(t[0], 100); /* something was done before */
	t[1]->ops->nap(t[1], 100);
	assert_true(ls_clock_seconds() - begin < 50);
	transports_free(t, 2);
}

/* Random traffic: message m of (from, to, tag) has a length and bytes that both sides can compute. */
static size_t message_bytes(int from, int to, int tag, int m)
{
	return (size_t)(ls_mix64(SEED + (((uint64_t)from * 8 + to) * 8 + tag) * 1000 + m) % BYTES_MAX);
}

static unsigned char message_byte(int from, int to, int tag, int m, size_t i)
{
	return (unsigned char)(from * 41 + to * 31 + tag * 17 + m * 7 + i);
}

typedef struct stream {
	int started, finished;
} stream;

typedef struct player {
	ls_transport *t;
	stream streams[2][RANKS_MAX][TAGS];     /* sends, receives */
	unsigned char buffer[SLOTS][BYTES_MAX]; /* by slot */
	int busy[SLOTS], kind[SLOTS], peer[SLOTS], tag[SLOTS], number[SLOTS];
	int wrong, left;
	uint64_t draws;
} player;

static void player_start(player *p, int slot, int kind, int peer, int tag)
{
	ls_transport *t = p->t;
	int m = p->streams[kind][peer][tag].started++;
	int from = kind ? peer : t->rank, to = kind ? t->rank : peer;
	size_t bytes = message_bytes(from, to, tag, m);
	p->busy[slot] = 1;
	p->kind[slot] = kind;
	p->peer[slot] = peer;
	p->tag[slot] = tag;
	p->number[slot] = m;
	memset(p->buffer[slot], 0, BYTES_MAX);
	for (size_t i = 0; !kind && i < bytes; i++)
		p->buffer[slot][i] = message_byte(from, to, tag, m, i);
	p->wrong += kind ? t->ops->receive(t, slot, peer, tag, p->buffer[slot], bytes, NULL) != LS_OK
			 : t->ops->send(t, slot, peer, tag, p->buffer[slot], bytes) != LS_OK;
}

static void player_finish(player *p, int slot)
{
	int from = p->peer[slot], to = p->t->rank, tag = p->tag[slot], m = p->number[slot];
	p->wrong += !p->busy[slot];
	p->busy[slot] = 0;
	p->left--;
	if (!p->kind[slot])
		return;
	for (size_t i = 0; i < message_bytes(from, to, tag, m); i++)
		p->wrong += p->buffer[slot][i] != message_byte(from, to, tag, m, i);
}

/* Something to start in this slot: half of the slots receive, lest all of them wait to send. */
static void player_try(player *p, int slot)
{
	int kind = slot % 2;
	uint64_t draw = ls_mix64(SEED + 1 + p->draws++ * RANKS_MAX + (unsigned)p->t->rank);
	for (int i = 0; i < p->t->size * TAGS; i++) {
		int which = (int)((draw + (unsigned)i) % (unsigned)(p->t->size * TAGS));
		int peer = which / TAGS, tag = which % TAGS;
		/* not too far ahead of the other streams, so that slots are not all lent to peers that are behind */
		int limit = p->streams[kind][peer][tag].started;
		int least = limit;
		for (int j = 0; j < p->t->size * TAGS; j++) {
			if (j / TAGS != p->t->rank && p->streams[kind][j / TAGS][j % TAGS].started < least)
				least = p->streams[kind][j / TAGS][j % TAGS].started;
		}
		if (peer != p->t->rank && limit < MESSAGES && limit == least) {
			player_start(p, slot, kind, peer, tag);
			return;
		}
	}
}

static void *play(void *argument)
{
	player *p = argument;
	double end = ls_clock_seconds() + 60;
	p->left = 2 * (p->t->size - 1) * TAGS * MESSAGES;
	while (p->left > 0 && !p->wrong && ls_clock_seconds() < end) {
		int slots[5], count;
		for (int slot = 0; slot < SLOTS; slot++) {
			if (!p->busy[slot])
				player_try(p, slot);
		}
		p->wrong += p->t->ops->poll(p->t, slots, 5, &count) != LS_OK;
		for (int i = 0; i < count; i++)
			player_finish(p, slots[i]);
		if (count == 0)
			p->t->ops->nap(p->t, 1);
	}
	p->wrong += p->left != 0;
	return NULL;
}

static void random_traffic(void **state)
{
	(void)state;
	print_message("seed %d\n", SEED);
	for (int size = 2; size <= RANKS_MAX; size += size == 3 ? 4 : 1) {
		ls_transport *t[RANKS_MAX];
		pthread_t threads[RANKS_MAX];
		player *players = calloc((size_t)size, sizeof(*players));
		transports_new(t, size, SLOTS);
		for (int rank = 0; rank < size; rank++) {
			players[rank].t = t[rank];
			assert_int_equal(pthread_create(&threads[rank], NULL, play, &players[rank]), 0);
		}
		int wrong = 0;
		for (int rank = 0; rank < size; rank++) {
			pthread_join(threads[rank], NULL);
			wrong += players[rank].wrong;
		}
		transports_free(t, size);
		free(players);
		assert_int_equal(wrong, 0);
	}
}

TEST_MAIN(a_send_waits_for_its_receive, order_holds_within_a_tag, other_lengths_are_refused,
	  shorter_ones_where_they_may_be, bad_arguments, done_slots_come_shuffled, sums_are_in_rank_order,
	  what_was_abandoned_is_left_alone, naps_end, random_traffic)
