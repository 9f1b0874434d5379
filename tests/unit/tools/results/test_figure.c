/*
 * Kinds of figures: every kind has its own name, and a point's rate and wall time are of the right one.
 */
#include "tools/results/figure.h"
#include "unit/test_main.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void test_names(void **state)
{
	(void)state;
	for (int a = 0; a < LS_FIGURE_KINDS; a++) {
		assert_true(ls_figure_meaning((ls_figure)a)[0] != '\0');
		for (int b = 0; b < a; b++)
			assert_string_not_equal(ls_figure_name((ls_figure)a), ls_figure_name((ls_figure)b));
	}
}

static void test_points(void **state)
{
	ls_point point = { .job = { .kind = "bench", .epochs = 10, .samples = 1000 } };
	(void)state;
	assert_int_equal(ls_point_figure(&point), LS_FIGURE_MEASURED);
	assert_int_equal(ls_point_wall_figure(&point), LS_FIGURE_COMPUTED);
	point.job.replay = 1;
	assert_int_equal(ls_point_figure(&point), LS_FIGURE_SIMULATED);
	assert_int_equal(ls_point_wall_figure(&point), LS_FIGURE_COMPUTED_SIMULATED);
	point.job.epochs = 0; /* the wall time of the bench itself */
	assert_int_equal(ls_point_wall_figure(&point), LS_FIGURE_SIMULATED);
	point.job = (ls_point_job){ .kind = "train", .epochs = 10, .samples = 1000 };
	assert_int_equal(ls_point_wall_figure(&point), LS_FIGURE_MEASURED);
}

TEST_MAIN(test_names, test_points)
