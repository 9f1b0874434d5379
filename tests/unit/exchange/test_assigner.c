/*
 * Assignment: all micro-batches once, in proportion, to every worker; following speeds, and not following noise.
 */
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "exchange/assigner.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SEED = 771, NODES_MAX = 9 };

static uint32_t draw(uint64_t round, uint64_t what)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 3), round, what, words);
	return words[0];
}

static void check_cut(const int64_t *cut, int parts, int64_t microbatches, uint64_t round)
{
	if (cut[0] != 0 || cut[parts] != microbatches)
		fail_msg("seed %d, round %llu: the cut does not cover all micro-batches", SEED,
			 (unsigned long long)round);
	for (int i = 0; i < parts; i++)
		assert_true(cut[i] <= cut[i + 1]);
}

/* Random weights, some of them of servers: every worker within about a micro-batch of its share, none without. */
static void test_proportions(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 400; round++) {
		int nodes = 1 + (int)(draw(round, 0) % NODES_MAX), devices[NODES_MAX], workers = 0;
		int64_t microbatches = 1 + draw(round, 1) % 200, cut[NODES_MAX + 1], again[NODES_MAX + 1];
		double weight[NODES_MAX], sum = 0;
		for (int i = 0; i < nodes; i++) {
			devices[i] = i > 0 && draw(round, 10 + (uint64_t)i) % 5 == 0 ? 0 : 1;
			weight[i] = 1 + draw(round, 30 + (uint64_t)i) % 7;
			sum += devices[i] > 0 ? weight[i] : 0;
			workers += devices[i] > 0;
		}
		ls_assigner d, e;
		assert_ok(ls_assigner_init(&d, nodes, devices, weight, 0));
		assert_ok(ls_assigner_init(&e, nodes, devices, weight, 0));
		ls_assigner_assign(&d, microbatches, cut);
		ls_assigner_assign(&e, microbatches, again);
		assert_memory_equal(cut, again, sizeof(int64_t) * ((size_t)nodes + 1));
		check_cut(cut, nodes, microbatches, round);
		for (int i = 0; i < nodes; i++) {
			double share = devices[i] > 0 ? (double)microbatches * weight[i] / sum : 0;
			int64_t count = cut[i + 1] - cut[i];
			if (devices[i] == 0)
				assert_int_equal(count, 0);
			else if (microbatches >= workers)
				assert_true(count >= 1);
			/* a micro-batch by rounding, one a neighbour on either side to make fewer partial sums, one
			 * given away */
			if (fabs((double)count - share) > 3 + (microbatches < 3 * nodes ? nodes : 0))
				fail_msg("seed %d, round %llu: node %d has %lld micro-batches, its share is %g", SEED,
					 (unsigned long long)round, i, (long long)count, share);
		}
		ls_assigner_release(&d);
		ls_assigner_release(&e);
	}
}

static void test_exact_shares(void **state)
{
	(void)state;
	const int devices[] = { 3, 2 };
	const double weight[] = { 3, 2 };
	int64_t cut[3];
	ls_assigner d;
	assert_ok(ls_assigner_init(&d, 2, devices, weight, 0));
	ls_assigner_assign(&d, 5, cut);
	assert_int_equal(cut[1], 3);
	ls_assigner_assign(&d, 40, cut);
	assert_int_equal(cut[1], 24);
	ls_assigner_release(&d);
}

/* Five micro-batches on two equal nodes: 2 + 3 makes three partial sums, 3 + 2 four. */
static void test_fewer_partials(void **state)
{
	(void)state;
	const int devices[] = { 1, 1 };
	const double weight[] = { 1, 1 };
	int64_t cut[3];
	ls_assigner d;
	assert_ok(ls_assigner_init(&d, 2, devices, weight, 0));
	ls_assigner_assign(&d, 5, cut);
	assert_int_equal(cut[1], 2);
	ls_assigner_release(&d);
	ls_assign_devices(0, 5, 2, cut);
	assert_int_equal(cut[1], 2);
}

static void test_devices_are_even(void **state)
{
	(void)state;
	for (int64_t first = 0; first < 5; first++)
		for (int64_t microbatches = 0; microbatches < 40; microbatches++)
			for (int devices = 1; devices <= 8; devices++) {
				int64_t cut[9], most = (microbatches + devices - 1) / devices;
				ls_assign_devices(first, first + microbatches, devices, cut);
				assert_int_equal(cut[0], first);
				assert_int_equal(cut[devices], first + microbatches);
				for (int i = 0; i < devices; i++)
					assert_true(cut[i + 1] - cut[i] >= 0 && cut[i + 1] - cut[i] <= most);
			}
}

/* `steps` steps of nodes with these micro-batch times, each off by up to `noise`. */
static void live(ls_assigner *d, int64_t microbatches, const double *microbatch_s, double noise, int steps,
		 int64_t *cut)
{
	for (int s = 0; s < steps; s++) {
		double seconds[NODES_MAX];
		ls_assigner_assign(d, microbatches, cut);
		for (int i = 0; i < d->nodes; i++) {
			double off = noise * ((double)draw((uint64_t)s, 100 + (uint64_t)i) / UINT32_MAX * 2 - 1);
			seconds[i] = (double)(cut[i + 1] - cut[i]) * microbatch_s[i] * (1 + off);
		}
		ls_assigner_learn(d, cut, seconds);
	}
	ls_assigner_assign(d, microbatches, cut);
}

/* A node at half speed gets half as much; when it recovers, as much. */
static void test_follows_speeds(void **state)
{
	(void)state;
	const int devices[] = { 1, 1, 0 };
	const double weight[] = { 1, 1, 0 }, slow[] = { 0.1, 0.2, 0 }, even[] = { 0.1, 0.1, 0 };
	int64_t cut[4];
	ls_assigner d;
	assert_ok(ls_assigner_init(&d, 3, devices, weight, 1));
	ls_assigner_assign(&d, 12, cut);
	assert_int_equal(cut[1], 6);
	live(&d, 12, slow, 0.05, 30, cut);
	assert_int_equal(cut[1], 8);
	assert_int_equal(cut[2], 12);
	assert_int_equal(cut[3], 12);
	live(&d, 12, even, 0.05, 60, cut);
	assert_int_equal(cut[1], 6);
	ls_assigner_release(&d);
}

static void test_ignores_noise(void **state)
{
	(void)state;
	const int devices[] = { 2, 2, 2 };
	const double weight[] = { 2, 2, 2 }, even[] = { 0.1, 0.1, 0.1 };
	int64_t cut[4];
	ls_assigner d;
	assert_ok(ls_assigner_init(&d, 3, devices, weight, 1));
	live(&d, 24, even, 0.1, 400, cut);
	assert_true(d.changes <= 2);
	assert_int_equal(cut[1], 8);
	assert_int_equal(cut[2], 16);
	ls_assigner_release(&d);
}

/* A node that stood still for a while still gets a micro-batch, or its recovery would not be noticed. */
static void test_nobody_is_given_up(void **state)
{
	(void)state;
	const int devices[] = { 1, 1 };
	const double weight[] = { 1, 1 }, stuck[] = { 0.01, 5 }, well[] = { 0.01, 0.01 };
	int64_t cut[3];
	ls_assigner d;
	assert_ok(ls_assigner_init(&d, 2, devices, weight, 1));
	live(&d, 16, stuck, 0, 30, cut);
	assert_int_equal(cut[1], 15);
	live(&d, 16, well, 0, 60, cut);
	assert_int_equal(cut[1], 8);
	ls_assigner_release(&d);
}

TEST_MAIN(test_proportions, test_exact_shares, test_fewer_partials, test_devices_are_even, test_follows_speeds,
	  test_ignores_noise, test_nobody_is_given_up)
