/*
 * Differences from the original: computed from settings and from what was measured, numbers compared as numbers.
 */
#include "tools/results/differences.h"
#include "unit/test_main.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void is(const ls_difference *d, const char *name, const char *original, const char *ours, size_t points)
{
	assert_string_equal(d->name, name);
	assert_string_equal(d->original, original);
	assert_string_equal(d->ours, ours);
	assert_int_equal(d->points, points);
}

static void test_point(void **state)
{
	(void)state;
	ls_point_setting settings[] = {
		{ "optimizer", "adamw", "adam" }, { "weight-decay", "0.010", "1e-2" },
		{ "clip-norm", "1", "0" },        { "data", "Wikipedia", "" },
		{ "warmup", "20", "20" },
	};
	ls_point point = { .state = LS_POINT_DONE, .setting_count = COUNT(settings), .settings = settings };
	ls_difference out[8];
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 3);
	is(&out[0], "optimizer", "adamw", "adam", 1);
	is(&out[1], "clip-norm", "1", "0", 1);
	is(&out[2], "data", "Wikipedia", "", 1);
	assert_int_equal(ls_point_differences(&point, out, 1), 1);
	point.job.replay = 1;
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 4);
	is(&out[3], "compute", "real", "simulated", 1);
	point.setting_count = 0; /* nothing is known about the original */
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 0);
}

/* Two texts that begin like numbers are not numbers. */
static void test_numbers(void **state)
{
	(void)state;
	ls_point_setting settings[] = { { "data", "1 book", "1 page" },
					{ "lr", "0.0001", "1e-4" },
					{ "lr", "nan", "nan" } };
	ls_point point = { .setting_count = COUNT(settings), .settings = settings };
	ls_difference out[8];
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 1);
	is(&out[0], "data", "1 book", "1 page", 1);
}

/* Launches are those that were made. */
static void test_launches(void **state)
{
	(void)state;
	ls_point_setting settings[] = { { "launches", "2", "3" } };
	ls_point_launch launches[] = { { .load = 0 }, { .reason = "killed" }, { .load = 0 } };
	ls_point_repeat repeats[] = { { 10, 1, 1, 0 }, { 10, 1, 1, 2 } };
	ls_point point = { .setting_count = 1,
			   .settings = settings,
			   .launch_count = 3,
			   .launches = launches,
			   .repeat_count = 2,
			   .repeats = repeats };
	ls_difference out[2];
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 0);
	point.repeat_count = 1;
	assert_int_equal(ls_point_differences(&point, out, COUNT(out)), 1);
	is(&out[0], "launches", "2", "1", 1);
}

/* Each once with the number of its points, those of one name together; points that are not done do not count. */
static void test_merged(void **state)
{
	(void)state;
	ls_point_setting first[] = { { "steps", "100", "20" }, { "lr", "0.1", "0.2" } };
	ls_point_setting second[] = { { "steps", "100", "50" } }, third[] = { { "steps", "100", "20" } };
	ls_point_setting failed[] = { { "steps", "100", "1" } };
	ls_point points[] = {
		{ .state = LS_POINT_FAILED, .setting_count = 1, .settings = failed },
		{ .state = LS_POINT_DONE, .setting_count = 2, .settings = first },
		{ .state = LS_POINT_DONE, .setting_count = 1, .settings = second },
		{ .state = LS_POINT_DONE, .setting_count = 1, .settings = third },
	};
	ls_results results = { .point_count = COUNT(points), .points = points };
	ls_difference out[8];
	assert_int_equal(ls_results_differences(&results, out, COUNT(out)), 3);
	is(&out[0], "steps", "100", "20", 2);
	is(&out[1], "steps", "100", "50", 1);
	is(&out[2], "lr", "0.1", "0.2", 1);
	assert_int_equal(ls_results_differences(&results, out, 2), 2);
	assert_true(ls_results_has_original(&results));
	results.point_count = 1;
	assert_false(ls_results_has_original(&results));
}

TEST_MAIN(test_point, test_numbers, test_launches, test_merged)
