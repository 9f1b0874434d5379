/*
 * The counter generator: known answers, ranges cut anywhere, every instruction set, and the shapes of distributions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "base/rng.h"
#include "base/rng_kernels.h"

static void check_philox(const uint32_t counter[4], const uint32_t key[2], const uint32_t expected[4])
{
	uint32_t out[4];
	ls_philox4x32(counter, key, out);
	assert_memory_equal(out, expected, sizeof(out));
}

/* The vectors published with Random123. */
static void known_answers(void **state)
{
	(void)state;
	check_philox((uint32_t[]){ 0, 0, 0, 0 }, (uint32_t[]){ 0, 0 },
		     (uint32_t[]){ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 });
	check_philox((uint32_t[]){ ~0u, ~0u, ~0u, ~0u }, (uint32_t[]){ ~0u, ~0u },
		     (uint32_t[]){ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd });
	check_philox((uint32_t[]){ 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		     (uint32_t[]){ 0xa4093822, 0x299f31d0 },
		     (uint32_t[]){ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 });
}

static void words_take_the_counter_low_first(void **state)
{
	(void)state;
	ls_rng rng = { { 0xa4093822, 0x299f31d0 } };
	uint32_t words[4];
	ls_rng_words(rng, 0x0370734413198a2e, 0x85a308d3243f6a88, words);
	assert_int_equal(words[0], 0xd16cfe09);
	assert_int_equal(words[3], 0x24126ea1);
}

static void keys_differ(void **state)
{
	(void)state;
	ls_rng base = ls_rng_make(1, LS_RNG_TEST, 1);
	ls_rng others[] = { ls_rng_make(2, LS_RNG_TEST, 1), ls_rng_make(1, LS_RNG_INIT, 1),
			    ls_rng_make(1, LS_RNG_TEST, 2), ls_rng_make(1, LS_RNG_TEST, 1ull << 40) };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_memory_not_equal(&base, &others[i], sizeof(base));
	assert_true(ls_hash_text("conv1.weight") != ls_hash_text("conv2.weight"));
	assert_true(ls_hash_text("") != ls_hash_text("a"));
}

enum { LENGTH = 777 };

/* The element's definition, word by word, with libm in double precision. */
static double reference_normal(ls_rng rng, uint64_t high, uint64_t index)
{
	uint32_t words[4];
	ls_rng_words(rng, high, index / 4, words);
	const uint32_t *pair = words + (index & 2);
	double radius = sqrt(-2.0 * log((pair[0] + 0.5) * 0x1p-32)), angle = 2 * acos(-1.0) * pair[1] * 0x1p-32;
	return radius * (index & 1 ? sin(angle) : cos(angle));
}

static void normals_agree_with_libm(void **state)
{
	(void)state;
	ls_rng rng = ls_rng_make(3, LS_RNG_TEST, 9);
	static float out[1 << 16];
	ls_rng_fill_normal(rng, 5, 0, 1 << 16, 1.0f, out);
	for (uint64_t i = 0; i < 1 << 16; i++) {
		double expected = reference_normal(rng, 5, i);
		if (fabs(out[i] - expected) > 2e-6 * (1 + fabs(expected)))
			fail_msg("element %llu: %.9g, libm says %.9g", (unsigned long long)i, (double)out[i], expected);
	}
}

static void ranges_may_be_cut_anywhere(void **state)
{
	(void)state;
	ls_rng rng = ls_rng_make(7, LS_RNG_TEST, 0);
	const uint64_t begin = (1ull << 34) - 300; /* the block number carries into its second word inside the range */
	float whole[LENGTH], part[LENGTH], uniform[LENGTH];
	ls_rng_fill_normal(rng, 1, begin, LENGTH, 0.5f, whole);
	ls_rng_fill_uniform(rng, 1, begin, LENGTH, -2, 3, uniform);
	for (size_t cut = 0; cut <= LENGTH; cut += cut < 140 ? 1 : 61) {
		ls_rng_fill_normal(rng, 1, begin, cut, 0.5f, part);
		ls_rng_fill_normal(rng, 1, begin + cut, LENGTH - cut, 0.5f, part + cut);
		assert_memory_equal(whole, part, sizeof(whole));
		ls_rng_fill_uniform(rng, 1, begin, cut, -2, 3, part);
		ls_rng_fill_uniform(rng, 1, begin + cut, LENGTH - cut, -2, 3, part + cut);
		assert_memory_equal(uniform, part, sizeof(uniform));
	}
	uint32_t words[4];
	ls_rng_words(rng, 1, (begin + 400) / 4, words);
	assert_true(uniform[400] == -2 + 5 * ls_rng_unit(words[0]));
	assert_true(fabs(whole[400] - 0.5 * reference_normal(rng, 1, begin + 400)) < 1e-5);
}

/* Writes nothing behind the range. */
static void fills_exactly_count(void **state)
{
	(void)state;
	for (size_t count = 0; count < 130; count++) {
		float out[132];
		for (size_t i = 0; i < 132; i++)
			out[i] = 99;
		ls_rng_fill_normal(ls_rng_make(1, LS_RNG_TEST, 1), 0, 3, count, 1, out);
		for (size_t i = count; i < 132; i++)
			assert_true(out[i] == 99);
	}
}

static void every_instruction_set_gives_the_same_bits(void **state)
{
	(void)state;
	static const ls_rng_kernels *const table[LS_ISA_COUNT] = LS_ISA_TABLES(ls_rng_kernels);
	ls_rng rng = ls_rng_make(11, LS_RNG_TEST, 4);
	for (int isa = 1; isa < LS_ISA_COUNT; isa++)
		for (uint64_t block = 0; ls_isa_has(isa) && block < 4096; block += LS_RNG_TILE) {
			float expected[4 * LS_RNG_TILE], out[4 * LS_RNG_TILE];
			table[0]->normal(rng, 8, block, 0.1f, expected);
			table[isa]->normal(rng, 8, block, 0.1f, out);
			assert_memory_equal(expected, out, sizeof(out));
			table[0]->uniform(rng, 8, block, -0.1f, 0.7f, expected);
			table[isa]->uniform(rng, 8, block, -0.1f, 0.7f, out);
			assert_memory_equal(expected, out, sizeof(out));
		}
}

/* Sample moments of n values lie within five of their standard errors. */
static void normal_moments(void **state)
{
	(void)state;
	enum { N = 1 << 20 };
	static float out[N];
	double sum[5] = { 0 }, pairs = 0;
	ls_rng_fill_normal(ls_rng_make(5, LS_RNG_TEST, 2), 0, 0, N, 2.0f, out);
	int beyond = 0;
	for (int i = 0; i < N; i++) {
		double x = out[i] / 2, power = 1;
		for (int k = 1; k < 5; k++)
			sum[k] += power *= x;
		beyond += fabs(x) > 3;
		pairs += i ? x * out[i - 1] / 2 : 0;
	}
	double error = 5 / sqrt(N);
	assert_true(fabs(sum[1] / N) < error);
	assert_true(fabs(sum[2] / N - 1) < error * sqrt(2));
	assert_true(fabs(sum[3] / N) < error * sqrt(15));
	assert_true(fabs(sum[4] / N - 3) < error * sqrt(96));
	assert_true(fabs(pairs / N) < error);
	assert_true(fabs(beyond / (double)N - 0.0026998) < error * sqrt(0.0027));
}

static void uniform_moments_and_range(void **state)
{
	(void)state;
	enum { N = 1 << 20, BINS = 64 };
	static float out[N];
	int histogram[BINS] = { 0 };
	ls_rng_fill_uniform(ls_rng_make(6, LS_RNG_TEST, 2), 0, 0, N, -1, 1, out);
	for (int i = 0; i < N; i++) {
		assert_true(out[i] >= -1 && out[i] < 1);
		histogram[(int)((out[i] + 1) / 2 * BINS)]++;
	}
	double chi = 0;
	for (int bin = 0; bin < BINS; bin++)
		chi += pow(histogram[bin] - (double)N / BINS, 2) / ((double)N / BINS);
	assert_true(chi > 25 && chi < 125); /* 63 degrees of freedom: mean 63, deviation 11 */
}

/* In a narrow range far from zero most draws round to its ends. */
static void uniform_never_reaches_its_bound(void **state)
{
	(void)state;
	float out[4096];
	float low = 1e6f, bound = 1e6f + 0.125f;
	ls_rng_fill_uniform(ls_rng_make(6, LS_RNG_TEST, 3), 0, 0, 4096, low, bound, out);
	for (int i = 0; i < 4096; i++)
		assert_true(out[i] >= low && out[i] < bound);
}

static void below_covers_its_range(void **state)
{
	(void)state;
	assert_int_equal(ls_rng_below(0, 10), 0);
	assert_int_equal(ls_rng_below(~0u, 10), 9);
	assert_int_equal(ls_rng_below(~0u, ~0u), ~0u - 1);
	assert_true(ls_rng_unit(~0u) < 1.0f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(words_take_the_counter_low_first),
		cmocka_unit_test(keys_differ),
		cmocka_unit_test(normals_agree_with_libm),
		cmocka_unit_test(ranges_may_be_cut_anywhere),
		cmocka_unit_test(fills_exactly_count),
		cmocka_unit_test(every_instruction_set_gives_the_same_bits),
		cmocka_unit_test(normal_moments),
		cmocka_unit_test(uniform_moments_and_range),
		cmocka_unit_test(uniform_never_reaches_its_bound),
		cmocka_unit_test(below_covers_its_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
