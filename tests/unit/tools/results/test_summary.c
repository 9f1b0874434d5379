/*
 * The figures of a point: medians of launches, not of all repeats; two spreads; busy and failed launches.
 */
#include "tools/results/results.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static ls_point summary_of(ls_point_launch *launches, size_t launch_count, ls_point_repeat *repeats, size_t count)
{
	ls_point point = {
		.launch_count = launch_count, .launches = launches, .repeat_count = count, .repeats = repeats
	};
	assert_int_equal(ls_point_summarize(&point), LS_OK);
	return point;
}

static void test_medians_of_launches(void **state)
{
	(void)state;
	ls_point_launch launches[3] = { { 0 } };
	ls_point_repeat repeats[] = {
		{ 100, 10, 1, 0 }, { 102, 11, 1, 0 }, { 110, 12, 1, 0 }, /* median 102, spread 10 / 102 */
		{ 120, 20, 2, 1 }, { 120, 20, 2, 1 }, { 120, 20, 2, 1 }, /* median 120, spread 0 */
		{ 140, 30, 3, 2 }, { 150, 31, 3, 2 }, { 154, 32, 3, 2 }, /* median 150, spread 14 / 150 */
	};
	ls_point p = summary_of(launches, 3, repeats, COUNT(repeats));
	NEAR(p.samples_per_s, 120);
	NEAR(p.step_ms, 20);
	NEAR(p.wall_s, 2);
	NEAR(p.samples_per_s_min, 100);
	NEAR(p.samples_per_s_max, 154);
	NEAR(p.spread_within, 14.0 / 150);
	NEAR(p.spread_between, (150.0 - 102) / 120);
	assert_int_equal(p.busy, 0);
	assert_int_equal(ls_point_launches_done(&p), 3);
}

/* Three repeats of one launch and one of another: the launch with more repeats has no more weight. */
static void test_launches_weigh_the_same(void **state)
{
	(void)state;
	ls_point_launch launches[2] = { { 0 } };
	ls_point_repeat repeats[] = { { 100, 1, 1, 0 }, { 100, 1, 1, 0 }, { 100, 1, 1, 0 }, { 200, 1, 1, 1 } };
	NEAR(summary_of(launches, 2, repeats, COUNT(repeats)).samples_per_s, 150);
}

static void test_busy_launches_do_not_count(void **state)
{
	(void)state;
	ls_point_launch launches[] = { { .busy = 1 }, { .again = 1 }, { .again = 0 } };
	ls_point_repeat repeats[] = { { 10, 1, 1, 0 }, { 100, 1, 1, 1 }, { 104, 1, 1, 2 } };
	ls_point p = summary_of(launches, 3, repeats, COUNT(repeats));
	NEAR(p.samples_per_s, 102);
	NEAR(p.samples_per_s_min, 100);
	assert_int_equal(p.busy, 0);
	assert_int_equal(ls_point_launches_done(&p), 2);

	launches[1].busy = launches[2].busy = 1; /* unless there is no other */
	p = summary_of(launches, 3, repeats, COUNT(repeats));
	NEAR(p.samples_per_s, 100);
	NEAR(p.samples_per_s_min, 10);
	assert_int_equal(p.busy, 1);
}

static void test_failed_launches_have_no_repeats(void **state)
{
	(void)state;
	ls_point_launch launches[] = { { .reason = "killed by signal 9" }, { .wall_s = 1 } };
	ls_point_repeat repeats[] = { { 100, 1, 1, 1 }, { 110, 1, 1, 1 } };
	ls_point p = summary_of(launches, 2, repeats, COUNT(repeats));
	NEAR(p.samples_per_s, 105);
	NEAR(p.spread_between, 0);
	assert_int_equal(ls_point_launches_done(&p), 1);
}

/* Files before version 3. */
static void test_repeats_without_launches(void **state)
{
	(void)state;
	ls_point_repeat repeats[] = { { 30, 3, 9, 0 }, { 10, 5, 7, 0 }, { 20, 4, 8, 0 } };
	ls_point p = summary_of(NULL, 0, repeats, COUNT(repeats));
	NEAR(p.samples_per_s, 20);
	NEAR(p.spread_within, 1);
	NEAR(p.spread_between, 0);
	assert_int_equal(p.busy, 0);
	assert_int_equal(ls_point_launches_done(&p), 1);
}

static void test_when_a_machine_is_busy(void **state)
{
	(void)state;
	assert_false(ls_launch_is_busy(&(ls_point_launch){ .load = 0.05, .steal = 0.01 }));
	assert_true(ls_launch_is_busy(&(ls_point_launch){ .load = 0.5 }));
	assert_true(ls_launch_is_busy(&(ls_point_launch){ .steal = 0.05 }));
}

TEST_MAIN(test_medians_of_launches, test_launches_weigh_the_same, test_busy_launches_do_not_count,
	  test_failed_launches_have_no_repeats, test_repeats_without_launches, test_when_a_machine_is_busy)
