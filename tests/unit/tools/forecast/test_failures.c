/*
 * Failures: without failures nothing is lost, the chosen interval loses least, and more nodes lose more.
 */
#include "tools/forecast/failures.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

static void test_goodput(void **state)
{
	ls_cluster c;

	(void)state;
	ls_cluster_init(&c);
	assert_true(ls_goodput_of(&c, 1000).part == 1 && ls_goodput_of(&c, 1000).interval_s == 0);
	c.mtbf_hours = 10000;
	c.checkpoint_s = 10;
	c.restart_s = 0;
	ls_goodput best = ls_goodput_of(&c, 1000);
	assert_true(best.interval_s > 848 && best.interval_s < 849); /* sqrt(2 * 10 * 36000) */
	assert_true(best.part > 0.97 && best.part < 0.98);
	c.interval_s = best.interval_s / 2;
	assert_true(ls_goodput_of(&c, 1000).part < best.part);
	c.interval_s = best.interval_s * 2;
	assert_true(ls_goodput_of(&c, 1000).part < best.part);
	c.interval_s = 0;
	assert_true(ls_goodput_of(&c, 4000).part < best.part);
	c.restart_s = 600;
	assert_true(ls_goodput_of(&c, 1000).part < best.part);
}

/* Also where failures are frequent and restarts dear: no other interval is better. */
static void test_best_interval(void **state)
{
	ls_cluster c;

	(void)state;
	ls_cluster_init(&c);
	c.mtbf_hours = 0.5;
	c.checkpoint_s = 20;
	c.restart_s = 300;
	ls_goodput best = ls_goodput_of(&c, 4);                          /* 450 s between failures */
	assert_true(best.interval_s > 174.3 && best.interval_s < 174.4); /* sqrt(40 * 750 + 400) */
	for (double factor = 0.5; factor < 2; factor *= 1.05) {
		c.interval_s = best.interval_s * factor;
		assert_true(ls_goodput_of(&c, 4).part <= best.part);
	}
	c.interval_s = sqrt(2 * 20 * 450); /* Young's */
	assert_true(ls_goodput_of(&c, 4).part < best.part);
}

TEST_MAIN(test_goodput, test_best_interval)
