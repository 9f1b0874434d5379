/* The global norm: right, and independent of which thread sums which blocks. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>

#include "base/rng.h"
#include "optim/optimizer.h"
#include "unit/test_main.h"

#define SEED 42
#define COUNT (5 * LS_NORM_BLOCK + 77)
#define BLOCKS 6

static float x[COUNT];

static void test_block_counts(void **state)
{
	(void)state;
	assert_int_equal(ls_norm_blocks(0), 0);
	assert_int_equal(ls_norm_blocks(1), 1);
	assert_int_equal(ls_norm_blocks(LS_NORM_BLOCK), 1);
	assert_int_equal(ls_norm_blocks(LS_NORM_BLOCK + 1), 2);
	assert_int_equal(ls_norm_blocks(COUNT), BLOCKS);
	assert_true(ls_norm_combine(NULL, 0) == 0.0);
}

static void test_sum_is_right(void **state)
{
	(void)state;
	double sums[BLOCKS];
	long double expected = 0.0L;
	print_message("# seed %d\n", SEED);
	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, 0), 0, 0, COUNT, 2.0f, x);
	for (size_t i = 0; i < COUNT; i++)
		expected += (long double)x[i] * x[i];
	ls_norm_block_sums(x, COUNT, 0, BLOCKS, sums);
	double got = ls_norm_combine(sums, BLOCKS);
	assert_true(fabs(got - (double)expected) <= 1e-13 * (double)expected);
}

static void test_any_split_of_blocks(void **state)
{
	(void)state;
	double whole[BLOCKS], parts[BLOCKS];
	ls_norm_block_sums(x, COUNT, 0, BLOCKS, whole);
	for (size_t threads = 1; threads <= BLOCKS; threads++) {
		for (size_t t = threads; t-- > 0;)
			ls_norm_block_sums(x, COUNT, BLOCKS * t / threads, BLOCKS * (t + 1) / threads, parts);
		assert_memory_equal(whole, parts, sizeof(whole));
	}
}

/* Squares leave a float's range long before the norm is useless. */
static void test_extremes(void **state)
{
	(void)state;
	double sum;
	float big[3] = { 3e30f, 4e30f, 0.0f }, bad[2] = { 1.0f, NAN };
	ls_norm_block_sums(big, 3, 0, 1, &sum);
	assert_true(fabs(sqrt(sum) / 5e30 - 1.0) < 1e-6);
	ls_norm_block_sums(bad, 2, 0, 1, &sum);
	assert_true(isnan(sum));
}

TEST_MAIN(test_block_counts, test_sum_is_right, test_any_split_of_blocks, test_extremes)
