/*
 * A measurement that is repeated until it is steady, with made-up figures: of a quiet machine, one that is disturbed
 * for a while, and one that is always busy.
 */
#include "tools/probe/stable_rate.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct script {
	const double *rates;
	int count, at; /* the last one is repeated */
} script;

static double next(void *context)
{
	script *s = context;
	double rate = s->rates[s->at < s->count ? s->at : s->count - 1];
	s->at++;
	return rate;
}

#define MEASURE(repeats, expects, ...)                                                                                 \
	measure(&(script){ .rates = (const double[]){ __VA_ARGS__ },                                                   \
			   .count = sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double) },                        \
		repeats, expects)

static ls_stable_rate measure(script *s, int repeat, double expected)
{
	ls_stable_rate got = ls_stable_rate_measure(
		&(ls_stable_rate_options){ .rate = next, .context = s, .repeat = repeat, .expected = expected });
	assert_int_equal(s->at, repeat * got.rounds);
	return got;
}

static void expect(ls_stable_rate got, double value, double spread, int rounds)
{
	if (fabs(got.value - value) > 1e-9 || fabs(got.spread - spread) > 1e-9 || got.rounds != rounds)
		fail_msg("%g with a spread of %g after %d rounds, not %g, %g and %d", got.value, got.spread, got.rounds,
			 value, spread, rounds);
}

static void test_quiet(void **state)
{
	(void)state;
	expect(MEASURE(3, 0, 100, 104, 102), 102, 4 / 102.0, 1);
	expect(MEASURE(1, 0, 100), 100, 0, 1);
	expect(MEASURE(4, 0, 100, 100, 50, 100), 100, 0, 1); /* interrupted once */
}

static void test_disturbed(void **state)
{
	(void)state;
	expect(MEASURE(3, 0, 100, 60, 80, 99, 100, 101), 100, 0.02, 2);
	/* as steady as one core, but half of what two should do */
	expect(MEASURE(3, 225, 113, 114, 113, 190, 114, 114, 220, 221, 222), 221, 2 / 221.0, 3);
}

static void test_never_steady(void **state)
{
	(void)state;
	ls_stable_rate got = MEASURE(3, 0, 100, 60, 80, 100, 80, 90, 100, 50, 80, 100, 40, 80, 100, 30, 80);
	expect(got, 90, 20 / 90.0, LS_STABLE_ROUNDS);
	assert_true(got.spread > LS_STABLE_SPREAD);
	/* steady, and as slow as it is: a clock that cores share */
	expect(MEASURE(3, 400, 200), 200, 0, LS_STABLE_ROUNDS);
}

TEST_MAIN(test_quiet, test_disturbed, test_never_steady)
