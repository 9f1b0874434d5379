/*
 * Sampling: temperature, top-k and top-p give the distributions that they say, and the same tokens each time.
 */
#include "predict/token_sampler.h"

#include <math.h>

#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { WORDS = 6, DRAWS = 40000 };

/* Probabilities 0.4, 0.1, 0.2, 0.1, 0.15, 0.05. */
static const double chances[WORDS] = { 0.4, 0.1, 0.2, 0.1, 0.15, 0.05 };

static void shares_of(ls_token_sampler_options o, double out[WORDS])
{
	float logits[WORDS];
	ls_token_sampler *s;

	o.vocabulary = WORDS;
	for (int i = 0; i < WORDS; i++) {
		logits[i] = (float)(log(chances[i]) + 3);
		out[i] = 0;
	}
	assert_ok(ls_token_sampler_new(&s, &o));
	for (uint64_t i = 0; i < DRAWS; i++)
		out[ls_token_sampler_draw(s, logits, i % 5, i / 5)] += 1.0 / DRAWS;
	ls_token_sampler_free(s);
}

/* Within four deviations of a binomial distribution. */
static void assert_shares(const double got[WORDS], const double expected[WORDS])
{
	for (int i = 0; i < WORDS; i++) {
		double error = 1e-9 + 4 * sqrt(expected[i] * (1 - expected[i]) / DRAWS);
		if (fabs(got[i] - expected[i]) > error)
			fail_msg("token %d: a share of %.4f, expected %.4f", i, got[i], expected[i]);
	}
}

static void all_tokens(void **state)
{
	double got[WORDS];
	(void)state;
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_p = 1, .seed = 3 }, got);
	assert_shares(got, chances);
}

static void temperature_sharpens(void **state)
{
	double got[WORDS], expected[WORDS], sum = 0;
	(void)state;
	for (int i = 0; i < WORDS; i++)
		sum += expected[i] = pow(chances[i], 1 / 0.5);
	for (int i = 0; i < WORDS; i++)
		expected[i] /= sum;
	shares_of((ls_token_sampler_options){ .temperature = 0.5, .top_p = 1, .seed = 3 }, got);
	assert_shares(got, expected);
}

/* Of tokens 1 and 3, which are equally probable, the smaller id is taken. */
static void top_k_cuts(void **state)
{
	const double three[WORDS] = { 0.4 / 0.75, 0, 0.2 / 0.75, 0, 0.15 / 0.75, 0 };
	const double four[WORDS] = { 0.4 / 0.85, 0.1 / 0.85, 0.2 / 0.85, 0, 0.15 / 0.85, 0 };
	double got[WORDS];
	(void)state;
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_k = 3, .top_p = 1, .seed = 1 }, got);
	assert_shares(got, three);
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_k = 4, .top_p = 1, .seed = 1 }, got);
	assert_shares(got, four);
}

static void top_p_cuts(void **state)
{
	const double two[WORDS] = { 0.4 / 0.6, 0, 0.2 / 0.6, 0, 0, 0 };
	const double three[WORDS] = { 0.4 / 0.75, 0, 0.2 / 0.75, 0, 0.15 / 0.75, 0 };
	const double of_three[WORDS] = { 0.4 / 0.6, 0, 0.2 / 0.6, 0, 0, 0 };
	double got[WORDS];
	(void)state;
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_p = 0.59, .seed = 1 }, got);
	assert_shares(got, two);
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_p = 0.61, .seed = 1 }, got);
	assert_shares(got, three);
	/* of the three most probable ones, which have 0.75: 0.6 is 80 % of that */
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_k = 3, .top_p = 0.79, .seed = 1 }, got);
	assert_shares(got, of_three);
}

static void the_most_probable(void **state)
{
	const double first[WORDS] = { 1 };
	double got[WORDS];
	(void)state;
	shares_of((ls_token_sampler_options){ .temperature = 0, .top_p = 1 }, got);
	assert_shares(got, first);
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_k = 1, .top_p = 1 }, got);
	assert_shares(got, first);
	shares_of((ls_token_sampler_options){ .temperature = 1, .top_p = 1e-9 }, got);
	assert_shares(got, first);
}

/* Tokens of a text depend on seed, text and place, not on what was drawn before. */
static void draws_repeat(void **state)
{
	const float logits[WORDS] = { 0 };
	ls_token_sampler_options o = { .vocabulary = WORDS, .temperature = 1, .top_p = 1, .seed = 8 };
	ls_token_sampler *a, *b;
	int differ = 0;
	(void)state;
	assert_ok(ls_token_sampler_new(&a, &o));
	o.seed = 9;
	assert_ok(ls_token_sampler_new(&b, &o));
	for (uint64_t place = 0; place < 100; place++) {
		int32_t once = ls_token_sampler_draw(a, logits, 2, place);
		ls_token_sampler_draw(a, logits, 7, place);
		assert_int_equal(ls_token_sampler_draw(a, logits, 2, place), once);
		differ += ls_token_sampler_draw(b, logits, 2, place) != once;
	}
	assert_true(differ > 50);
	ls_token_sampler_free(a);
	ls_token_sampler_free(b);
}

TEST_MAIN(all_tokens, temperature_sharpens, top_k_cuts, top_p_cuts, the_most_probable, draws_repeat)
