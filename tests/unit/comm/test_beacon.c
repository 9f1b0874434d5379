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

#include "comm/beacon.h"
#include "comm/comm_state.h"

typedef struct pair {
	ls_beacon *beacon[2];
	ls_beacon_card cards[3]; /* the third is of a stranger */
} pair;

static const ls_beacon_card *card_of(void *context, int peer)
{
	return &((pair *)context)->cards[peer];
}

/* The node that a node hears within ten seconds; -1: none. */
static int hear(pair *p, int node)
{
	for (int i = 0; i < 1000; i++) {
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

/* How many datagrams node 1 accepts, as one of a job of `size` nodes, up to one that is certainly good: what was sent
 * to it before that has come, too, for datagrams do not overtake each other on loopback. */
static int heard_before_a_good_one(pair *p, int size)
{
	int heard = 0, after = -1;
	ls_beacon_ask(p->beacon[0], &p->cards[1]);
	for (int i = 0; i < 1000 && after < 0; i++) {
		while ((after = ls_beacon_hear(p->beacon[1], card_of, p, size)) > 0)
			heard++;
		if (after < 0)
			poll(NULL, 0, 10);
	}
	assert_int_equal(after, 0);
	return heard;
}

static void strangers_are_not_heard(void **state)
{
	pair *p = *state;
	need_network(p);
	ls_beacon *third = ls_beacon_new(2), *same = ls_beacon_new(1);
	ls_beacon_card wrong = p->cards[1];
	wrong.key ^= 1;
	assert_true(third && same);
	ls_beacon_ask(third, &p->cards[1]);
	assert_int_equal(heard_before_a_good_one(p, 3), 1); /* one of a job of three: such datagrams do come */
	ls_beacon_ask(third, &p->cards[1]);
	assert_int_equal(heard_before_a_good_one(p, 2), 0); /* of a job of two */
	ls_beacon_ask(third, &wrong);
	assert_int_equal(heard_before_a_good_one(p, 3), 0);
	ls_beacon_ask(same, &p->cards[1]); /* says that it is oneself */
	assert_int_equal(heard_before_a_good_one(p, 3), 0);
	ls_beacon_free(third);
	ls_beacon_free(same);
}

/* Addresses 1 to 9, of which four are sent to other nodes. */
static void addresses_that_others_reach_come_first(void **state)
{
	(void)state;
	ls_beacon_card card = { .count = 3 };
	const ls_beacon_link links[] = {
		{ .address = 1, .is_bridge = 1 }, /* docker0 without a container */
		{ .address = 2, .is_bridge = 1, .has_carrier = 1 },
		{ .address = 3, .is_bridge = 1, .has_carrier = 1 },
		{ .address = 4, .has_carrier = 1 }, /* a VLAN or a tunnel */
		{ .address = 5, .is_physical = 1 }, /* without a cable */
		{ .address = 6, .is_physical = 1, .has_carrier = 1 },
		{ .address = 7, .is_bridge = 1, .is_default = 1, .has_carrier = 1 }, /* of a host of virtual machines */
		{ .address = 8, .is_physical = 1, .is_default = 1, .has_carrier = 1 },
		{ .address = 9, .is_physical = 1, .has_carrier = 1 },
	};
	static const uint32_t best[] = { 7, 8, 6, 9 }, few[] = { 4, 2, 3, 5 };
	ls_beacon_choose(&card, links, 9);
	assert_int_equal(card.count, 4);
	assert_memory_equal(card.addresses, best, sizeof(best));
	ls_beacon_choose(&card, links, 5);
	assert_int_equal(card.count, 4);
	assert_memory_equal(card.addresses, few, sizeof(few));
	ls_beacon_choose(&card, links, 1);
	assert_int_equal(card.count, 0); /* no host can be behind it */
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

/* An answer beside MPI shows that a peer lives, but not for ever where MPI stays silent. */
static void an_answer_counts_for_a_while(void **state)
{
	(void)state;
	ls_comm_peer peers[2] = { { .heard = 0 }, { .heard = 100 } };
	ls_comm comm = { .size = 2, .timeout = 10, .peers = peers };
	assert_true(ls_comm_last_sign(&comm, 1) == 100); /* has never answered */
	peers[1].seen = 99;
	assert_true(ls_comm_last_sign(&comm, 1) == 100); /* has been heard since */
	peers[1].seen = 139;
	assert_true(ls_comm_last_sign(&comm, 1) == 139);
	peers[1].seen = 1000;
	assert_true(ls_comm_last_sign(&comm, 1) == 140); /* four times the timeout */
	atomic_store(&comm.hurry, 1);
	assert_true(ls_comm_last_sign(&comm, 1) == 112); /* of 3 s once asked to end */
	comm.timeout = 1;
	assert_true(ls_comm_last_sign(&comm, 1) == 104);
}

static void only_other_hosts_are_asked(void **state)
{
	(void)state;
	ls_comm_peer peers[4] = { { .host = "lm6" }, { .host = "lm6" }, { .host = "lm61" }, { .host = "" } };
	ls_comm comm = { .size = 4, .rank = 1, .peers = peers };
	assert_false(ls_comm_is_elsewhere(&comm, 0));
	assert_true(ls_comm_is_elsewhere(&comm, 2));
	assert_false(ls_comm_is_elsewhere(&comm, 3)); /* not known yet */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_asked_answers_once, begin, end),
		cmocka_unit_test_setup_teardown(strangers_are_not_heard, begin, end),
		cmocka_unit_test(addresses_that_others_reach_come_first),
		cmocka_unit_test(without_a_beacon_nothing_happens),
		cmocka_unit_test(an_answer_counts_for_a_while),
		cmocka_unit_test(only_other_hosts_are_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
