/*
 * Metrics of regression and of several labels, against numbers worked out by hand (and by scikit-learn).
 */
#include <math.h>

#include "trainer/target_sums.h"
#include "unit/test_main.h"

static void is_near(double got, double expected)
{
	if (!(fabs(got - expected) < 1e-9))
		fail_msg("%.12g, expected %.12g", got, expected);
}

/* Two targets of four samples in two micro-batches; y = [3, -0.5, 2, 7] and x = [2.5, 0, 2, 8] have a published R2. */
static void test_regression(void **state)
{
	const float y[] = { 3, 1, -0.5f, 2, 2, 3, 7, 4 }, x[] = { 2.5f, 1, 0, 2, 2, 3, 8, 8 };
	const double scale[] = { 1, 10 };
	ls_target_sums all[2] = { { { 0 } } }, part[2];
	ls_eval_result result = { .samples = 4 };
	ls_target_score score;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const ls_microbatch m = { .count = 2, .targets = y + i * 4, .target_count = 2 };
		ls_target_sums_count(LS_TASK_REGRESSION, &m, x + i * 4, part);
		ls_target_sums_add(all, part, 2);
	}
	ls_target_score_of(LS_TASK_REGRESSION, &all[0], 4, scale[0], &score);
	is_near(score.mae, 0.5);
	is_near(score.rmse, sqrt(0.375));
	is_near(score.r2, 1 - 1.5 / 29.1875);
	ls_target_score_of(LS_TASK_REGRESSION, &all[1], 4, scale[1], &score);
	is_near(score.mae, 10);
	is_near(score.rmse, 20);
	is_near(score.r2, 1 - 16.0 / 5);
	ls_target_sums_conclude(LS_TASK_REGRESSION, all, 2, scale, &result);
	is_near(result.mae, 5.25);
	is_near(result.rmse, (sqrt(0.375) + 20) / 2);
	is_near(result.r2, (1 - 1.5 / 29.1875 + 1 - 16.0 / 5) / 2);
	assert_true(isnan(result.accuracy));
}

/* All targets alike: as scikit-learn, 1 where all is right, else 0. */
static void test_constant_targets(void **state)
{
	const float y[] = { 2, 2 }, right[] = { 2, 2 }, wrong[] = { 2, 3 };
	const ls_microbatch m = { .count = 2, .targets = y, .target_count = 1 };
	ls_target_sums sums;
	ls_target_score score;

	(void)state;
	ls_target_sums_count(LS_TASK_REGRESSION, &m, right, &sums);
	ls_target_score_of(LS_TASK_REGRESSION, &sums, 2, 1, &score);
	is_near(score.r2, 1);
	ls_target_sums_count(LS_TASK_REGRESSION, &m, wrong, &sums);
	ls_target_score_of(LS_TASK_REGRESSION, &sums, 2, 1, &score);
	is_near(score.r2, 0);
}

/* First label: 1 right, 1 false alarm, 1 missed; second: 2 right; third: never there and never predicted. */
static void test_labels(void **state)
{
	const float y[] = { 1, 1, 0, 0, 1, 0, 1, 0, 0 }, x[] = { 2, 0.5f, -1, 3, 1, -1, -2, -1, -1 };
	const ls_microbatch m = { .count = 3, .targets = y, .target_count = 3 };
	ls_eval_result result = { .samples = 3, .accuracy = 0.25 };
	ls_target_sums sums[3];
	ls_target_score score;

	(void)state;
	ls_target_sums_count(LS_TASK_MULTI_LABEL, &m, x, sums);
	ls_target_score_of(LS_TASK_MULTI_LABEL, &sums[0], 3, 1, &score);
	assert_int_equal(score.support, 2);
	assert_int_equal(score.predicted, 2);
	is_near(score.precision, 0.5);
	is_near(score.recall, 0.5);
	is_near(score.f1, 0.5);
	ls_target_score_of(LS_TASK_MULTI_LABEL, &sums[2], 3, 1, &score);
	is_near(score.f1, 0);
	ls_target_sums_conclude(LS_TASK_MULTI_LABEL, sums, 3, NULL, &result);
	is_near(result.micro_f1, 6.0 / 8);
	is_near(result.macro_f1, 1.5 / 3);
	is_near(result.accuracy, 0.25);
}

TEST_MAIN(test_regression, test_constant_targets, test_labels)
