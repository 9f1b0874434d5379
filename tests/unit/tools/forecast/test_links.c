/*
 * Links are shared fairly, urgent messages start first, and no more than the window is in flight.
 */
#include "tools/forecast/links.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

static const double fast[4] = { 1, 1, 1, 1 };
static int order[16], arrived;

static void through(void *context, ls_channel *channel, ls_parcel parcel)
{
	(void)context;
	(void)channel;
	order[arrived++] = parcel.bucket;
}

static void open_links(ls_links *l, int groups)
{
	assert_int_equal(ls_links_init(l, groups, 16), LS_OK);
	for (int p = 0; p < groups; p++) {
		l->port[p].capacity[LS_LIMIT_OUT] = l->port[p].capacity[LS_LIMIT_IN] = 100;
		l->port[p].capacity[LS_LIMIT_BOTH] = 200;
		l->port[p].capacity[LS_LIMIT_COMM] = 1;
		for (int q = 0; q < groups; q++)
			if (p != q)
				ls_links_channel(l, p, q)->fan = ls_links_channel(l, p, q)->fan_in = 1;
	}
	arrived = 0;
}

static ls_parcel parcel(int bucket, double bytes)
{
	return (ls_parcel){ .rank = bucket, .bucket = bucket, .bytes = bytes, .message = bytes, .cap = INFINITY };
}

/* Two groups send to one, which also receives from a third: they share its incoming link. */
static void test_fair(void **state)
{
	ls_links l;

	(void)state;
	open_links(&l, 4);
	ls_links_send(&l, 0, 1, parcel(0, 1000));
	ls_links_send(&l, 2, 1, parcel(0, 1000));
	ls_links_send(&l, 2, 3, parcel(0, 1000));
	ls_links_share(&l, fast);
	assert_true(fabs(ls_links_channel(&l, 0, 1)->rate - 50) < 1e-9);
	assert_true(fabs(ls_links_channel(&l, 2, 1)->rate - 50) < 1e-9);
	assert_true(fabs(ls_links_channel(&l, 2, 3)->rate - 50) < 1e-9);
	assert_true(l.port[1].full[LS_LIMIT_IN] && l.port[2].full[LS_LIMIT_OUT] && !l.port[0].full[LS_LIMIT_OUT]);
	l.port[2].capacity[LS_LIMIT_OUT] = 60; /* the other sender gets what the slow one leaves */
	ls_links_share(&l, fast);
	assert_true(fabs(ls_links_channel(&l, 0, 1)->rate - 70) < 1e-9);
	assert_true(fabs(ls_links_channel(&l, 2, 1)->rate - 30) < 1e-9);
	ls_links_release(&l);
}

static void test_both_ways(void **state)
{
	ls_links l;

	(void)state;
	open_links(&l, 2);
	l.port[0].capacity[LS_LIMIT_BOTH] = 120;
	ls_links_send(&l, 0, 1, parcel(0, 1000));
	ls_links_share(&l, fast);
	assert_true(fabs(ls_links_channel(&l, 0, 1)->rate - 100) < 1e-9);
	ls_links_send(&l, 1, 0, parcel(0, 1000));
	ls_links_share(&l, fast);
	assert_true(fabs(ls_links_channel(&l, 0, 1)->rate - 60) < 1e-9);
	assert_true(fabs(ls_links_channel(&l, 1, 0)->rate - 60) < 1e-9);
	ls_links_release(&l);
}

/* A node of a group of 10 sends to 9 others. */
static void test_parties(void **state)
{
	ls_links l;

	(void)state;
	open_links(&l, 1);
	ls_links_channel(&l, 0, 0)->fan = ls_links_channel(&l, 0, 0)->fan_in = 9;
	ls_links_send(&l, 0, 0, parcel(0, 100));
	ls_links_share(&l, fast);
	assert_true(fabs(ls_links_channel(&l, 0, 0)->rate - 100.0 / 9) < 1e-9);
	assert_true(fabs(ls_links_next(&l) - 9) < 1e-9);
	ls_links_release(&l);
}

static void run_dry(ls_links *l)
{
	for (int i = 0; i < 100; i++) {
		ls_links_share(l, fast);
		double next = ls_links_next(l);
		if (isinf(next))
			return;
		ls_links_pass(l, next, through, NULL);
	}
	fail_msg("never dry");
}

static void test_urgency_and_window(void **state)
{
	ls_links l;

	(void)state;
	open_links(&l, 2);
	ls_links_channel(&l, 0, 1)->window = 250;
	ls_links_send(&l, 0, 1, parcel(5, 100));
	ls_links_share(&l, fast); /* in flight, not overtaken */
	ls_links_send(&l, 0, 1, parcel(4, 100));
	ls_links_send(&l, 0, 1, parcel(1, 100));
	ls_links_send(&l, 0, 1, parcel(3, 100));
	ls_links_share(&l, fast);
	assert_int_equal(ls_links_channel(&l, 0, 1)->flying_count, 2);
	assert_int_equal(ls_links_channel(&l, 0, 1)->flying[1].bucket, 1);
	run_dry(&l);
	assert_int_equal(arrived, 4);
	static const int expected[] = { 5, 1, 3, 4 };
	assert_memory_equal(order, expected, sizeof(expected));
	ls_links_release(&l);
}

/* Messages in flight go one after another; an older step goes before all that wait. */
static void test_order(void **state)
{
	ls_links l;

	(void)state;
	open_links(&l, 2);
	for (int i = 0; i < 2; i++)
		ls_links_send(&l, 0, 1, parcel(7 + i, 100));
	ls_links_share(&l, fast);
	assert_int_equal(ls_links_channel(&l, 0, 1)->flying_count, 2);
	assert_true(fabs(ls_links_next(&l) - 1) < 1e-9); /* the first gets the whole link */
	ls_links_channel(&l, 0, 1)->window = 100;
	ls_parcel younger = parcel(1, 100);
	younger.step = 1;
	ls_links_send(&l, 0, 1, younger);
	ls_links_send(&l, 0, 1, parcel(2, 100));
	run_dry(&l);
	static const int expected[] = { 7, 8, 2, 1 };
	assert_memory_equal(order, expected, sizeof(expected));
	ls_links_release(&l);
}

TEST_MAIN(test_fair, test_both_ways, test_parties, test_urgency_and_window, test_order)
