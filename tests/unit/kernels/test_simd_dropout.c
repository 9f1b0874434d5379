/* Dropout draws what its contract says, word by word, and keeps the right share. */
#include "unit/kernels/simd_check.h"
#include "unit/test_main.h"

/* The contract, one element at a time. */
static float dropped(ls_rng rng, uint64_t sample, uint64_t element, float probability, float x)
{
	uint32_t words[4];
	ls_rng_words(rng, sample, element / 4, words);
	return ls_rng_unit(words[element % 4]) >= probability ? x * (1.0f / (1.0f - probability)) : 0;
}

static void test_every_element_draws_its_word(void **state)
{
	(void)state;
	const ls_rng rng = ls_rng_make(CHECK_SEED, LS_RNG_DROPOUT, 9);
	const uint64_t samples[] = { 0, 5, 0x123456789abcdefull };
	const uint64_t starts[] = { 0, 16, 64, 6, 1027, (1ull << 34) - 32 };
	const float probabilities[] = { 0, 0.1f, 0.5f, 0.999f, 1 };
	CHECK_EACH_ISA(simd)
	for (int panel = 16; panel <= 80; panel += 16)
		for (int form = 0; form < 3 * 6 * 5; form++) {
			const uint64_t sample = samples[form % 3], first = starts[form / 3 % 6];
			const float probability = probabilities[form / 18];
			float *x = check_random_panel(1, panel, panel - 2, 1), *y = check_floats(panel);
			float *expected = check_floats(panel);
			for (int e = 0; e < panel; e++)
				expected[e] = dropped(rng, sample, first + (uint64_t)e, probability, x[e]);
			simd->dropout(x, panel, rng.key[0], rng.key[1], sample, first, probability, y);
			check_same("dropout", y, expected, panel);
			simd->dropout(x, panel, rng.key[0], rng.key[1], sample, first, probability, x);
			check_same("dropout in place", x, expected, panel);
			free(x);
			free(y);
			free(expected);
		}
}

static void test_share_kept(void **state)
{
	(void)state;
	const ls_rng rng = ls_rng_make(CHECK_SEED, LS_RNG_DROPOUT, 10);
	float x[64], y[64];
	int kept = 0;
	for (int e = 0; e < 64; e++)
		x[e] = 1;
	for (uint64_t sample = 0; sample < 1000; sample++) {
		ls_simd_get()->dropout(x, 64, rng.key[0], rng.key[1], sample, 0, 0.3f, y);
		for (int e = 0; e < 64; e++)
			kept += y[e] != 0;
	}
	assert_true(abs(kept - 44800) < 600); /* five standard deviations */
}

TEST_MAIN(test_every_element_draws_its_word, test_share_kept)
