/*
 * Sums over leaves: the binary counter gives the tree's bits for any number of leaves and any team.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "exchange/pieces.h"

enum { SEED = 20240613, FLOATS = 133, LEAVES_MAX = 40, THREADS_MAX = 3 };

/* Magnitudes far apart, so that another order of adding gives other bits. */
static void fill_leaf(int64_t leaf, float *out)
{
	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, 1), (uint64_t)leaf, 0, FLOATS, 1.0f, out);
	for (int i = 0; i < FLOATS; i++)
		out[i] *= (float)(1 << (leaf * 7 + i) % 11);
}

/* The definition: leaf i is the i-th leaf, a node is left + right, the left subtree a whole power of two. */
static void tree(int64_t first, int64_t count, float *out)
{
	float right[FLOATS];
	int64_t left = 1;
	if (count == 1) {
		fill_leaf(first, out);
		return;
	}
	while (left * 2 < count)
		left *= 2;
	tree(first, left, out);
	tree(first + left, count - left, right);
	for (int i = 0; i < FLOATS; i++)
		out[i] += right[i];
}

static void add_leaves(ls_pieces *pieces, ls_team *team, int64_t leaves)
{
	for (int64_t i = 0; i < leaves; i++) {
		fill_leaf(i, ls_pieces_next(pieces));
		ls_pieces_push(pieces, team);
	}
}

static void check_sum(ls_pieces *pieces, ls_team *team, int64_t leaves)
{
	float expected[FLOATS];
	tree(0, leaves, expected);
	add_leaves(pieces, team, leaves);
	const float *got = ls_pieces_finish(pieces, team);
	for (int i = 0; i < FLOATS; i++)
		if (memcmp(&got[i], &expected[i], sizeof(float)) != 0)
			fail_msg("seed %d: %lld leaves, team of %d: float %d is %.9g, the tree has %.9g", SEED,
				 (long long)leaves, ls_team_size(team), i, (double)got[i], (double)expected[i]);
}

static void test_tree(void **state)
{
	(void)state;
	for (int threads = 1; threads <= THREADS_MAX; threads++) {
		ls_team *team = NULL;
		assert_int_equal(ls_team_new(&team, threads), LS_OK);
		for (int64_t leaves = 1; leaves <= LEAVES_MAX; leaves++) {
			ls_pieces pieces;
			assert_int_equal(ls_pieces_init(&pieces, FLOATS, leaves), LS_OK);
			check_sum(&pieces, team, leaves);
			check_sum(&pieces, team, leaves); /* and again: finish starts over */
			ls_pieces_release(&pieces);
		}
		ls_team_free(team);
	}
}

/* Buffers for the largest step serve smaller ones, too. */
static void test_smaller_steps(void **state)
{
	ls_team *team = NULL;
	ls_pieces pieces;
	(void)state;
	assert_int_equal(ls_team_new(&team, 2), LS_OK);
	assert_int_equal(ls_pieces_init(&pieces, FLOATS, LEAVES_MAX), LS_OK);
	for (int64_t leaves = LEAVES_MAX; leaves >= 1; leaves -= 3)
		check_sum(&pieces, team, leaves);
	ls_pieces_release(&pieces);
	ls_team_free(team);
}

/* Another order must be told apart, or the tests above show nothing. */
static void test_order_matters(void **state)
{
	float sum[FLOATS], leaf[FLOATS], expected[FLOATS];
	(void)state;
	tree(0, LEAVES_MAX, expected);
	fill_leaf(0, sum);
	for (int64_t i = 1; i < LEAVES_MAX; i++) {
		fill_leaf(i, leaf);
		for (int k = 0; k < FLOATS; k++)
			sum[k] += leaf[k];
	}
	assert_memory_not_equal(sum, expected, sizeof sum);
}

/* One buffer a level, ceil(log2(leaves)) + 1 of them; the next leaf never lands on a piece that is held. */
static void test_bytes(void **state)
{
	ls_team *team = NULL;
	(void)state;
	assert_int_equal(ls_team_new(&team, 1), LS_OK);
	for (int64_t leaves = 1; leaves <= LEAVES_MAX; leaves++) {
		ls_pieces pieces;
		int levels = 1;
		while ((int64_t)1 << (levels - 1) < leaves)
			levels++;
		assert_int_equal(ls_pieces_init(&pieces, FLOATS, leaves), LS_OK);
		assert_int_equal(pieces.levels, levels);
		assert_int_equal(ls_pieces_bytes(FLOATS, leaves), (size_t)levels * FLOATS * sizeof(float));
		for (int64_t i = 0; i < leaves; i++) {
			float *next = ls_pieces_next(&pieces);
			assert_non_null(next);
			for (int h = 0; h < pieces.held; h++)
				assert_ptr_not_equal(next, pieces.level[h]);
			fill_leaf(i, next);
			ls_pieces_push(&pieces, team);
			assert_true(pieces.held <= pieces.levels);
		}
		ls_pieces_finish(&pieces, team);
		ls_pieces_release(&pieces);
	}
	ls_team_free(team);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_smaller_steps),
		cmocka_unit_test(test_order_matters),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
