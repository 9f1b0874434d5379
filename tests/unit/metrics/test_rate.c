/* Rates. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>

#include "metrics/rate.h"
#include "unit/test_main.h"

static void test_median_ignores_a_hiccup(void **state)
{
	(void)state;
	static ls_rate rate;
	assert_true(ls_rate_median(&rate) == 0.0);
	assert_true(ls_rate_mean_since(&rate, 10) == 0.0);
	for (int i = 0; i < 11; i++)
		ls_rate_add(&rate, i == 4 ? 100.0 : 0.5, 64.0);
	assert_true(ls_rate_median(&rate) == 128.0);
	assert_true(ls_rate_mean_since(&rate, 6) == 128.0);
	assert_true(fabs(ls_rate_mean_since(&rate, 11) - 11 * 64.0 / 105.0) < 1e-12);
	assert_true(ls_rate_mean_since(&rate, 0) == 0.0);
}

static void test_window(void **state)
{
	(void)state;
	static ls_rate rate;
	for (int i = 0; i < LS_RATE_WINDOW; i++)
		ls_rate_add(&rate, 1.0, 10.0);
	for (int i = 0; i < LS_RATE_WINDOW; i++)
		ls_rate_add(&rate, 2.0, 10.0);
	assert_true(ls_rate_median(&rate) == 5.0);
	assert_true(ls_rate_mean_since(&rate, 1u << 30) == 5.0);
	ls_rate_add(&rate, 4.0, 60.0); /* newest, at the ring's start */
	assert_true(ls_rate_mean_since(&rate, 1) == 15.0);
	assert_true(fabs(ls_rate_mean_since(&rate, 2) - 70.0 / 6.0) < 1e-12);
}

static void test_first_steps_do_not_count(void **state)
{
	(void)state;
	static ls_rate rate;
	for (int i = 0; i < LS_RATE_SKIPPED; i++)
		ls_rate_add(&rate, 8.0, 64.0);
	assert_true(ls_rate_median(&rate) == 8.0); /* there is nothing better yet */
	ls_rate_add(&rate, 2.0, 64.0);
	assert_true(ls_rate_median(&rate) == 32.0);
	ls_rate_add(&rate, 1.0, 64.0);
	assert_true(ls_rate_median(&rate) == 48.0);
	while (rate.count < 2 * LS_RATE_WINDOW) /* their places in the ring serve again */
		ls_rate_add(&rate, 1.0, rate.count % LS_RATE_WINDOW < LS_RATE_SKIPPED + LS_RATE_WINDOW / 2 ? 1.0 : 9.0);
	assert_true(ls_rate_median(&rate) == 1.0);
}

static void test_no_time_passed(void **state)
{
	(void)state;
	static ls_rate rate;
	ls_rate_add(&rate, 0.0, 10.0);
	assert_true(ls_rate_median(&rate) == 0.0);
	assert_true(ls_rate_mean_since(&rate, 1) == 0.0);
}

TEST_MAIN(test_median_ignores_a_hiccup, test_window, test_first_steps_do_not_count, test_no_time_passed)
