/*
 * Intervals: quantiles of errors, Student's t, and the comparisons that are built in.
 */
#include "tools/forecast/interval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/test_main.h"

enum { POINTS_MAX = 1000 };

static void test_quantile(void **state)
{
	double nine[9], twenty[20];

	(void)state;
	for (int i = 0; i < 9; i++)
		nine[i] = (i % 2 ? -0.01 : 0.01) * (i + 1);
	for (int i = 0; i < 20; i++)
		twenty[i] = (i % 2 ? -0.01 : 0.01) * (20 - i);
	assert_true(ls_interval_quantile(nine, 0) == 0);
	assert_true(fabs(ls_interval_quantile(nine, 9) - 0.09) < 1e-12);    /* k = 9 of 9 */
	assert_true(fabs(ls_interval_quantile(nine, 5) - 0.05) < 1e-12);    /* too few: the largest */
	assert_true(fabs(ls_interval_quantile(twenty, 20) - 0.19) < 1e-12); /* k = 19 of 20 */
	assert_true(fabs(ls_interval_quantile(twenty, 19) - 0.18) < 1e-12); /* sorted by now; k = 18 of 19 */
}

/* From tables of Student's distribution, 95 % one-sided. */
static void test_student(void **state)
{
	static const struct {
		double degrees, t, within;
	} rows[] = { { 1, 6.314, 0.13 }, { 2, 2.920, 0.015 }, { 3, 2.353, 0.01 },
		     { 4, 2.132, 0.01 }, { 9, 1.833, 0.001 }, { 1e6, 1.645, 0.001 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(fabs(ls_interval_student(rows[i].degrees) / rows[i].t - 1) < rows[i].within);
	assert_true(ls_interval_repeats(0.02, 1) == 0 && ls_interval_repeats(0, 5) == 0);
	assert_true(fabs(ls_interval_repeats(0.02, 5) - 2.13 * 0.02 * sqrt(1.2)) < 1e-4);
}

/* Every line of bench/planner.csv is read, and nine in ten of its points are within the interval made of them. */
static void test_comparisons(void **state)
{
	static ls_lab_point point[POINTS_MAX];
	size_t count = ls_lab_points(point, POINTS_MAX), lines = 0, inside = 0, waits = 0;

	(void)state;
	assert_int_equal(ls_lab_comparisons_count, 1);
	for (size_t i = 0; i < ls_lab_comparisons[0].bytes; i++)
		lines += ls_lab_comparisons[0].text[i] == '\n';
	assert_int_equal(count, lines - 1);
	for (size_t i = 0; i < count; i++) {
		double half = ls_interval_simulation(point[i].waits ? "links" : "compute");
		inside += fabs(log(point[i].predicted_ms / point[i].measured_ms)) <= half + 1e-12;
		waits += (size_t)point[i].waits;
	}
	assert_true(count >= 40 && waits >= 20 && waits < count);
	assert_true((double)inside >= 0.9 * (double)count);
	assert_true(ls_interval_simulation("links") > 0 && ls_interval_simulation("compute") > 0);
	assert_true(ls_lab_points(point, 3) == 3);
}

static void test_waits(void **state)
{
	(void)state;
	assert_false(ls_interval_waits("compute"));
	assert_false(ls_interval_waits("slowest node"));
	assert_true(ls_interval_waits("links") && ls_interval_waits("servers' links") && ls_interval_waits("latency"));
}

TEST_MAIN(test_quantile, test_student, test_comparisons, test_waits)
