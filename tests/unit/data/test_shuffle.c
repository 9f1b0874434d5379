/*
 * The keyed permutation: a bijection for every n, and one that shuffles.
 */
#include "unit/data/fixture.h"

#include "data/shuffle.h"
#include "unit/test_main.h"

static void assert_bijection(uint64_t seed, uint64_t epoch, uint64_t n)
{
	uint8_t *seen = calloc(n, 1);
	ls_permutation permutation = ls_permutation_make(seed, epoch, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = ls_permutation_at(&permutation, i);
		assert_true(x < n);
		assert_false(seen[x]);
		seen[x] = 1;
	}
	free(seen);
}

static void bijection_for_every_n(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 600; n++)
		assert_bijection(n, 3, n);
	static const uint64_t more[] = { 1021, 1024, 1025, 4095, 4096, 4097, 9973, 16384, 16385, 60000, 65537 };
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		assert_bijection(1, i, more[i]);
}

static void same_by_either_way(void **state)
{
	(void)state;
	ls_permutation permutation = ls_permutation_make(9, 2, 72000000);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(ls_permute(9, 2, 72000000, i * 700000), ls_permutation_at(&permutation, i * 700000));
}

/* Large n: no table can be afforded, but elements stay in range and rarely repeat a neighbour's order. */
static void huge_n(void **state)
{
	(void)state;
	static const uint64_t sizes[] = { 72000000, (uint64_t)1 << 40, ((uint64_t)1 << 62) + 12345, INT64_MAX };
	for (size_t k = 0; k < 4; k++) {
		int ascending = 0;
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t a = ls_permute(1, 0, sizes[k], i), b = ls_permute(1, 0, sizes[k], i + 1);
			assert_true(a < sizes[k]);
			ascending += b > a;
		}
		assert_in_range(ascending, 420, 580);
	}
}

static void seeds_and_epochs_differ(void **state)
{
	(void)state;
	int same_epoch = 0, same_seed = 0, fixed = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t x = ls_permute(1, 0, 1000, i);
		same_epoch += x == ls_permute(1, 1, 1000, i);
		same_seed += x == ls_permute(2, 0, 1000, i);
		fixed += x == i;
	}
	/* each count is about Poisson with mean 1 */
	assert_true(same_epoch < 9 && same_seed < 9 && fixed < 9);
}

/* All 24 orders of 4 elements, over many keys: chi-squared with 23 degrees of freedom. */
static void small_orders_are_uniform(void **state)
{
	(void)state;
	const int keys = 24000;
	int count[256] = { 0 };
	for (int key = 0; key < keys; key++) {
		unsigned code = 0;
		for (uint64_t i = 0; i < 4; i++)
			code = code << 2 | (unsigned)ls_permute(5, (uint64_t)key, 4, i);
		count[code]++;
	}
	double chi = 0, expected = keys / 24.0;
	int orders = 0;
	for (int code = 0; code < 256; code++)
		if (count[code]) {
			orders++;
			chi += (count[code] - expected) * (count[code] - expected) / expected;
		}
	print_message("# chi-squared %.1f over %d orders\n", chi, orders);
	assert_int_equal(orders, 24);
	assert_true(chi < 60.0);
}

/* Where element i of 1000 lands, in ten bins, over many epochs; and the correlation of place and value. */
static void places_are_uniform(void **state)
{
	(void)state;
	const uint64_t n = 1000;
	for (uint64_t i = 0; i < n; i += 333) {
		int bins[10] = { 0 };
		double chi = 0;
		for (uint64_t epoch = 0; epoch < 5000; epoch++)
			bins[ls_permute(1, epoch, n, i) / 100]++;
		for (int b = 0; b < 10; b++)
			chi += (bins[b] - 500.0) * (bins[b] - 500.0) / 500.0;
		assert_true(chi < 33.0); /* 9 degrees of freedom: p = 0.0001 */
	}
	double sum = 0;
	for (uint64_t i = 0; i < 60000; i++)
		sum += ((double)i - 29999.5) * ((double)ls_permute(3, 1, 60000, i) - 29999.5);
	double correlation = sum / (60000.0 * 60000.0 * 60000.0 / 12.0);
	assert_true(correlation < 0.02 && correlation > -0.02);
}

TEST_MAIN(bijection_for_every_n, same_by_either_way, huge_n, seeds_and_epochs_differ, small_orders_are_uniform,
	  places_are_uniform)
