/*
 * Communication is scaled half of the way, on a logarithmic scale, to where the simulated exchange of a probe takes as
 * long as the measured one.
 */
#include "tools/forecast/calibrate.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

#include <math.h>

#define NODES 3
#define GBIT 0.5
#define BYTES 44e6

/* Of three nodes each sends two thirds of the gradient as sums, and the same as new values. */
static const double wire_s = 2 * 2.0 / 3 * BYTES * 8 / (GBIT * 1e9);

static ls_cluster make_cluster(void)
{
	ls_cluster c;
	assert_ok(ls_cluster_of(&c, NODES, 1, GBIT));
	return c;
}

static void add(ls_cluster *c, int64_t servers, int bf16, double seconds)
{
	c->exchange[c->exchanges++] =
		(ls_measured_exchange){ .servers = servers, .bf16 = bf16, .bytes = BYTES, .seconds = seconds };
}

/* `part` of the speed of the wire is what the exchange reached. */
static void expect(const ls_cluster *c, int64_t servers, int bf16, double part)
{
	double got = 0;
	assert_ok(ls_cluster_calibrate(c, servers, bf16, &got));
	if (!(fabs(got / sqrt(part) - 1) < 0.02))
		fail_msg("%d servers, bf16 %d: factor %g, not about %g", (int)servers, bf16, got, sqrt(part));
}

static void test_nothing_measured(void **state)
{
	ls_cluster c = make_cluster();
	double factor = 0;
	(void)state;
	assert_ok(ls_cluster_calibrate(&c, 0, 0, &factor));
	assert_true(factor == 1);
	ls_cluster_release(&c);
}

static void test_links_that_lose_something(void **state)
{
	(void)state;
	for (int percent = 50; percent <= 120; percent += 10) {
		ls_cluster c = make_cluster();
		add(&c, 0, 0, wire_s * 100 / percent);
		expect(&c, 0, 0, percent / 100.0);
		ls_cluster_release(&c);
	}
}

/* The most similar exchange counts: of the same servers, else without servers; of the same wire. */
static void test_nearest(void **state)
{
	ls_cluster c = make_cluster();
	(void)state;
	add(&c, 0, 0, wire_s / 0.9);
	expect(&c, 1, 0, 0.9);
	expect(&c, 0, 1, 0.9);
	add(&c, 0, 1, wire_s / 2 / 0.8);
	add(&c, 1, 0, 2 * BYTES * 8 / (GBIT * 1e9) / 0.7); /* two workers, one server: both send everything to it */
	expect(&c, 0, 0, 0.9);
	expect(&c, 0, 1, 0.8);
	expect(&c, 1, 0, 0.7);
	expect(&c, 1, 1, 0.7);
	expect(&c, 2, 0, 0.9);
	ls_cluster_release(&c);
}

static void test_limits(void **state)
{
	ls_cluster c = make_cluster();
	double factor = 0;
	(void)state;
	add(&c, 0, 0, wire_s * 1000);
	assert_ok(ls_cluster_calibrate(&c, 0, 0, &factor));
	assert_true(factor == sqrt(0.25));
	c.exchange[0].seconds = wire_s / 1000;
	assert_ok(ls_cluster_calibrate(&c, 0, 0, &factor));
	assert_true(factor == sqrt(2));
	ls_cluster_release(&c);
}

TEST_MAIN(test_nothing_measured, test_links_that_lose_something, test_nearest, test_limits)
