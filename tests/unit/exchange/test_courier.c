/*
 * The courier: letters arrive whole and in order whatever their urgency, within the window, most urgent first; work is
 * done in between; sums; idle couriers sleep. What happens when nodes fail is in test_courier_failures.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crew.h"

enum { SEED = 20250307, TAGS = 3, LETTERS = 25, BYTES_MAX = 60000 };

/* Random traffic: letter k of (from, to, tag) has a length and bytes that both sides can compute. */
static uint64_t draw(int from, int to, int tag, int k)
{
	return ls_mix64(SEED + ((((uint64_t)from * 8 + (unsigned)to) * 8 + (unsigned)tag) << 20) + (unsigned)k);
}

static size_t letter_bytes(int from, int to, int tag, int k)
{
	uint64_t d = draw(from, to, tag, k);
	return d % 3 == 0 ? (size_t)(d >> 8) % 40 : (size_t)(d >> 8) % BYTES_MAX;
}

static unsigned char letter_byte(uint64_t d, size_t i)
{
	return (unsigned char)((d >> (i % 57)) + i / 57);
}

/* Letter k of a stream between this node and a peer; `random`: any urgency. */
static void letter_make(crew_member *m, ls_letter *letter, int outgoing, int peer, int tag, int k, int random)
{
	int from = outgoing ? m->rank : peer, to = outgoing ? peer : m->rank;
	uint64_t d = draw(from, to, tag, k);
	*letter = (ls_letter){ .peer = peer,
			       .tag = tag,
			       .outgoing = outgoing,
			       .bytes = letter_bytes(from, to, tag, k),
			       .urgency = random ? (int64_t)(d >> 40) % 10 - 5 : 0,
			       .what = "letter",
			       .number = k,
			       .done = crew_arrived,
			       .context = m };
	letter->buffer = calloc(1, letter->bytes + 1);
	for (size_t i = 0; outgoing && i < letter->bytes; i++)
		((unsigned char *)letter->buffer)[i] = letter_byte(d, i);
}

static int letter_is_wrong(const crew_member *m, const ls_letter *l)
{
	uint64_t d = draw(l->peer, m->rank, l->tag, (int)l->number);
	for (size_t i = 0; !l->outgoing && i < l->bytes; i++) {
		if (((const unsigned char *)l->buffer)[i] != letter_byte(d, i))
			return 1;
	}
	return l->started < l->posted;
}

static void check_traffic(crew_member *m, const ls_letter *letters, int count)
{
	uint64_t bytes[2][CREW_MAX] = { { 0 } }, number[2][CREW_MAX] = { { 0 } };
	for (int i = 0; i < count; i++) {
		bytes[letters[i].outgoing][letters[i].peer] += letters[i].bytes;
		number[letters[i].outgoing][letters[i].peer]++;
	}
	for (int peer = 0; peer < m->crew->size; peer++) {
		ls_traffic t = ls_courier_traffic(m->courier, peer);
		CREW_CHECK(m, t.bytes_sent == bytes[1][peer] && t.letters_sent == number[1][peer]);
		CREW_CHECK(m, t.bytes_received == bytes[0][peer] && t.letters_received == number[0][peer]);
	}
}

/* All letters between all nodes. With random urgencies all are posted at once; else in order, stream by stream. */
static void talk(crew_member *m)
{
	int size = m->crew->size, random = m->crew->context != NULL, count = 0;
	ls_letter *letters = calloc((size_t)(2 * size * TAGS * LETTERS), sizeof *letters);
	for (int k = 0; k < LETTERS; k++) {
		for (int tag = 0; tag < TAGS; tag++) {
			for (int peer = 0; peer < size; peer++) {
				if (peer == m->rank)
					continue;
				letter_make(m, &letters[count++], 0, peer, tag, k, random);
				letter_make(m, &letters[count++], 1, peer, tag, k, random);
			}
		}
	}
	ls_courier_post_all(m->courier, letters, (size_t)count / 2);
	for (int i = count / 2; i < count; i++)
		ls_courier_post(m->courier, &letters[i]);
	CREW_CHECK(m, crew_await(m, count));
	CREW_CHECK(m, ls_courier_status(m->courier) == LS_OK);
	int wrong = 0;
	for (int i = 0; i < count; i++)
		wrong += letter_is_wrong(m, &letters[i]);
	CREW_CHECK(m, wrong == 0);
	check_traffic(m, letters, count);
	for (int i = 0; i < count; i++)
		free(letters[i].buffer);
	free(letters);
}

static void letters_arrive_whole_and_in_order(void **state)
{
	(void)state;
	crew_member members[CREW_MAX];
	print_message("seed %d\n", SEED);
	for (int size = 1; size <= CREW_MAX; size += size < 3 ? 1 : 2) {
		int random = 1;
		crew c = { .size = size, .timeout = 15, .window = 100000, .seed = SEED, .play = talk };
		c.slots = ls_courier_slots(size, size * TAGS * LETTERS);
		c.context = &random;
		assert_int_equal(crew_run(&c, members), 0);
	}
}

/* Where nothing overtakes, the fewest slots suffice. */
static void few_slots_suffice_in_order(void **state)
{
	(void)state;
	crew_member members[CREW_MAX];
	for (int size = 2; size <= 5; size += 3) {
		crew c = { .size = size, .timeout = 15, .seed = SEED, .play = talk, .slots = 5 * size + 4 };
		assert_int_equal(crew_run(&c, members), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_arrive_whole_and_in_order),
		cmocka_unit_test(few_slots_suffice_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
