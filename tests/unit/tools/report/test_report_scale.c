/*
 * Axes: scales contain the values they were fitted to and end at round numbers; ticks are round, ordered and few.
 */
#include "tools/report/scale.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

static void expect_ticks(double low, double high, int zero, int logarithmic, size_t count, const double *expected)
{
	double ticks[LS_TICKS_MAX];
	ls_scale scale = ls_scale_fit(low, high, zero, logarithmic);
	assert_int_equal(ls_scale_ticks(&scale, 6, ticks), count);
	for (size_t i = 0; i < count; i++)
		assert_true(fabs(ticks[i] - expected[i]) <= 1e-9 * fabs(expected[i]));
}

static void test_linear(void **state)
{
	(void)state;
	expect_ticks(81, 343, 1, 0, 5, (const double[]){ 0, 100, 200, 300, 400 });
	expect_ticks(0.84, 0.966, 0, 0, 5, (const double[]){ 0.8, 0.85, 0.9, 0.95, 1 });
	expect_ticks(-3, 3, 1, 0, 7, (const double[]){ -3, -2, -1, 0, 1, 2, 3 });
}

static void test_logarithmic(void **state)
{
	(void)state;
	expect_ticks(140, 4800, 1, 1, 6, (const double[]){ 100, 200, 500, 1000, 2000, 5000 });
	expect_ticks(1, 16, 1, 1, 5, (const double[]){ 1, 2, 5, 10, 20 });
	ls_scale many = ls_scale_fit(1, 1e12, 0, 1);
	double ticks[LS_TICKS_MAX];
	size_t count = ls_scale_ticks(&many, 6, ticks);
	assert_true(count >= 4 && count <= 9);
	for (size_t i = 1; i < count; i++)
		assert_true(ticks[i] > ticks[i - 1]);
}

/* Whatever the values, the scale is one that can be drawn. */
static void test_degenerate(void **state)
{
	static const double cases[][2] = { { 0, 0 },       { 5, 5 },      { -2, -2 },        { 1e-30, 1e-30 },
					   { 1e30, 1e30 }, { 0, 1e-300 }, { 1e15, 1e15 + 1 } };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
			double ticks[LS_TICKS_MAX];
			ls_scale scale = ls_scale_fit(cases[i][0], cases[i][1], 1, logarithmic);
			scale.from = 0;
			scale.to = 100;
			assert_true(scale.low < scale.high && scale.low <= cases[i][0] && scale.high >= cases[i][1]);
			double low = ls_scale_at(&scale, cases[i][0]), high = ls_scale_at(&scale, cases[i][1]);
			assert_true(low >= 0 && low <= high && high <= 100); /* inside the plot */
			assert_true(ls_scale_ticks(&scale, 6, ticks) <= LS_TICKS_MAX);
		}
}

static void test_places(void **state)
{
	ls_scale linear = { 0, 10, 50, 250, 0 }, log = { 1, 16, 0, 400, 1 };
	(void)state;
	assert_true(fabs(ls_scale_at(&linear, 5) - 150) < 1e-9);
	assert_true(fabs(ls_scale_at(&log, 4) - 200) < 1e-9);
	assert_true(fabs(ls_scale_at(&log, 2) - 100) < 1e-9);
}

TEST_MAIN(test_linear, test_logarithmic, test_degenerate, test_places)
