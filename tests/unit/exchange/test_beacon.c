/*
 * Signs of life beside MPI: asked, answered, and not mistaken for another job's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>

#include "exchange/beacon.h"

typedef struct pair {
	ls_beacon *beacon[2];
	ls_beacon_card cards[2];
} pair;

static const ls_beacon_card *card_of(void *context, int peer)
{
	return &((pair *)context)->cards[peer];
}

/* Who is heard by a node within a second; -1: nobody. */
static int hear(pair *p, int node)
{
	for (int i = 0; i < 100; i++) {
		int peer = ls_beacon_hear(p->beacon[node], card_of, p, 2);
		if (peer >= 0)
			return peer;
		poll(NULL, 0, 10);
	}
	return -1;
}

static int hear_now(pair *p, int node)
{
	poll(NULL, 0, 50);
	return ls_beacon_hear(p->beacon[node], card_of, p, 2);
}

static int begin(void **state)
{
	static pair p;
	for (int node = 0; node < 2; node++) {
		p.beacon[node] = ls_beacon_new(node);
		p.cards[node] = ls_beacon_own_card(p.beacon[node]);
		p.cards[node].addresses[0] = htonl(INADDR_LOOPBACK); /* datagrams of a test stay on loopback */
		p.cards[node].count = 1;
	}
	*state = &p;
	return 0;
}

static int end(void **state)
{
	pair *p = *state;
	ls_beacon_free(p->beacon[0]);
	ls_beacon_free(p->beacon[1]);
	return 0;
}

static void need_network(const pair *p)
{
	if (!p->beacon[0] || !p->beacon[1])
		skip(); /* no address but that of the loopback interface */
}

static void who_is_asked_answers_once(void **state)
{
	pair *p = *state;
	need_network(p);
	assert_int_equal(hear_now(p, 0), -1);
	ls_beacon_ask(p->beacon[0], &p->cards[1]);
	assert_int_equal(hear(p, 1), 0); /* and answers */
	assert_int_equal(hear(p, 0), 1);
	while (hear_now(p, 0) >= 0 || hear_now(p, 1) >= 0)
		; /* on each further address of this machine */
	assert_int_equal(hear_now(p, 1), -1);
}

static void strangers_are_not_heard(void **state)
{
	pair *p = *state;
	need_network(p);
	ls_beacon_card wrong = p->cards[1];
	wrong.key ^= 1;
	ls_beacon_ask(p->beacon[0], &wrong);
	assert_int_equal(hear_now(p, 1), -1);
	ls_beacon_ask(p->beacon[1], &p->cards[1]); /* oneself */
	assert_int_equal(hear_now(p, 1), -1);
	ls_beacon *third = ls_beacon_new(2); /* of a job of two */
	ls_beacon_ask(third, &p->cards[1]);
	assert_int_equal(hear_now(p, 1), -1);
	ls_beacon_free(third);
}

static void without_a_beacon_nothing_happens(void **state)
{
	pair none = { .beacon = { NULL } };
	(void)state;
	ls_beacon_card card = ls_beacon_own_card(NULL);
	assert_int_equal(card.count, 0);
	ls_beacon_ask(NULL, &card);
	assert_int_equal(ls_beacon_hear(NULL, card_of, &none, 2), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_asked_answers_once, begin, end),
		cmocka_unit_test_setup_teardown(strangers_are_not_heard, begin, end),
		cmocka_unit_test(without_a_beacon_nothing_happens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
