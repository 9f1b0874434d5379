/*
 * Time to accuracy: the mean without the best and the worst seed, seeds that do not reach the target,
 * launches that were repeated.
 */
#include <math.h>

#include "tools/results/target.h"
#include "unit/test_main.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static ls_target_summary summary_of(ls_point_launch *launches, size_t count)
{
	ls_point point = { .launch_count = count, .launches = launches };
	ls_target_summary s;
	assert_int_equal(ls_target_summarize(&point, &s), LS_OK);
	return s;
}

static void test_best_and_worst_do_not_count(void **state)
{
	(void)state;
	ls_point_launch launches[] = {
		{ .seed = 1, .target_s = 30, .target_epochs = 3 }, { .seed = 2, .target_s = 10, .target_epochs = 1 },
		{ .seed = 3, .target_s = 22, .target_epochs = 2 }, { .seed = 4, .target_s = 20, .target_epochs = 2 },
		{ .seed = 5, .target_s = 90, .target_epochs = 9 },
	};
	ls_target_summary s = summary_of(launches, 5);
	assert_int_equal(s.seeds, 5);
	assert_int_equal(s.reached, 5);
	NEAR(s.seconds, (30 + 22 + 20) / 3.0);
	NEAR(s.epochs, (3 + 2 + 2) / 3.0);
}

static void test_a_seed_that_does_not_reach_it_is_the_worst(void **state)
{
	(void)state;
	ls_point_launch launches[] = { { .target_s = 10, .target_epochs = 1 },
				       { .wall_s = 100 },
				       { .target_s = 14, .target_epochs = 1 },
				       { .target_s = 12, .target_epochs = 1 } };
	ls_target_summary s = summary_of(launches, 4);
	assert_int_equal(s.reached, 3);
	NEAR(s.seconds, 13);
	launches[0].target_s = 0; /* two: no figure */
	s = summary_of(launches, 4);
	assert_int_equal(s.reached, 2);
	NEAR(s.seconds, 0);
	NEAR(s.epochs, 0);
}

static void test_too_few_seeds(void **state)
{
	(void)state;
	ls_point_launch launches[] = { { .target_s = 10, .target_epochs = 1 }, { .target_s = 12, .target_epochs = 1 } };
	ls_target_summary s = summary_of(launches, 2);
	assert_int_equal(s.reached, 2);
	NEAR(s.seconds, 0);
}

/* A busy launch and the one that repeats it are one seed; a launch that died is none. */
static void test_launches_and_seeds(void **state)
{
	(void)state;
	ls_point_launch launches[] = { { .seed = 1, .target_s = 50, .target_epochs = 1, .busy = 1 },
				       { .seed = 1, .target_s = 10, .target_epochs = 1, .again = 1 },
				       { .seed = 2, .reason = "killed by signal 9" },
				       { .seed = 3, .target_s = 11, .target_epochs = 1, .busy = 1 },
				       { .seed = 3, .again = 1, .reason = "killed by signal 9" },
				       { .seed = 4, .target_s = 12, .target_epochs = 1 } };
	ls_target_summary s = summary_of(launches, 6);
	assert_int_equal(s.seeds, 3);
	NEAR(s.seconds, 11);
}

static void test_best_accuracy(void **state)
{
	(void)state;
	ls_point_test tests[] = { { 0, 1, 5, 0.5 }, { 0, 2, 9, 0.75 }, { 0, 3, 14, 0.7 }, { 1, 1, 5, 0.9 } };
	ls_point point = { .test_count = 4, .tests = tests };
	NEAR(ls_target_best(&point, 0), 0.75);
	NEAR(ls_target_best(&point, 1), 0.9);
	NEAR(ls_target_best(&point, 2), 0);
}

TEST_MAIN(test_best_and_worst_do_not_count, test_a_seed_that_does_not_reach_it_is_the_worst, test_too_few_seeds,
	  test_launches_and_seeds, test_best_accuracy)
