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
	assert_true(ls_goodput_of(&c, 1000, 0.2).part == 1 && ls_goodput_of(&c, 1000, 0.2).interval_s == 0);
	c.mtbf_hours = 10000;
	c.checkpoint_s = 10;
	c.restart_s = 0;
	ls_goodput best = ls_goodput_of(&c, 1000, 0.2);
	assert_true(best.interval_s > 848 && best.interval_s < 849); /* sqrt(2 * 10 * 36000) */
	assert_true(best.part > 0.97 && best.part < 0.98);
	c.interval_s = best.interval_s / 2;
	assert_true(ls_goodput_of(&c, 1000, 0.2).part < best.part);
	c.interval_s = best.interval_s * 2;
	assert_true(ls_goodput_of(&c, 1000, 0.2).part < best.part);
	c.interval_s = 0;
	assert_true(ls_goodput_of(&c, 4000, 0.2).part < best.part);
	c.restart_s = 600;
	assert_true(ls_goodput_of(&c, 1000, 0.2).part < best.part);
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
	ls_goodput best = ls_goodput_of(&c, 4, 0.2);                     /* 450 s between failures */
	assert_true(best.interval_s > 174.3 && best.interval_s < 174.4); /* sqrt(40 * 750 + 400) */
	for (double factor = 0.5; factor < 2; factor *= 1.05) {
		c.interval_s = best.interval_s * factor;
		assert_true(ls_goodput_of(&c, 4, 0.2).part <= best.part);
	}
	c.interval_s = sqrt(2 * 20 * 450); /* Young's */
	assert_true(ls_goodput_of(&c, 4, 0.2).part < best.part);
}

/* 1000 nodes that fail every 10,000 hours, 0.5 s per snapshot, 30 s per restart, steps of 0.2 s. By hand: 36,000 s
 * between failures; sqrt(2 * 0.5 * 36030 + 0.25) = 189.8 s or 949 steps; 2 * (30 + 189.8) / 3.6e7 = 1.2211e-5 of
 * failures take two neighbours; sqrt(20 * (36000 / 1.2211e-5 + 30) + 100) = 242,823 s between checkpoints of 10 s; (1 +
 * 0.5/189.8 + 10/242823) (1 + (190.3/2 + 30 + 1.2211e-5 * 242833/2) / 36000) = 1.0026755 * 1.0035176 = 1 / 0.99384. */
static void test_snapshots(void **state)
{
	ls_cluster c;

	(void)state;
	ls_cluster_init(&c);
	c.mtbf_hours = 10000;
	c.checkpoint_s = 10;
	ls_goodput disk = ls_goodput_of(&c, 1000, 0.2);
	assert_true(disk.snapshot_every == 0 && disk.fallback == 0);
	c.snapshot_s = 0.5;
	ls_goodput memory = ls_goodput_of(&c, 1000, 0.2);
	assert_int_equal(memory.snapshot_every, 949);
	assert_true(fabs(memory.fallback / 1.2211e-5 - 1) < 1e-3);
	assert_true(fabs(memory.interval_s / 242823 - 1) < 1e-3);
	assert_true(fabs(memory.part - 0.99384) < 1e-4);
	assert_true(memory.part > disk.part);
	c.interval_s = 3600; /* 1.0026342 + 10/3600 = 1.005412; (125.15 + 1.2211e-5 * 1805) / 36000 = 0.0034770 */
	assert_true(fabs(ls_goodput_of(&c, 1000, 0.2).part - 1 / (1.005412 * 1.003477)) < 1e-5);
	assert_int_equal(ls_goodput_of(&c, 1, 0.2).snapshot_every, 0); /* its memory is lost with it */
	assert_true(fabs(ls_goodput_of(&c, 2, 0.2).fallback * 3.6e7 /
				 (30 + 0.2 * (double)ls_goodput_of(&c, 2, 0.2).snapshot_every) -
			 1) < 1e-9);                                      /* one neighbour */
	assert_int_equal(ls_goodput_of(&c, 1000, 1e6).snapshot_every, 1); /* a step is longer than the best interval */
	c.mtbf_hours = 0.001; /* failures faster than restarts: nothing breaks */
	ls_goodput worst = ls_goodput_of(&c, 1000, 0.2);
	assert_true(worst.fallback == 1 && worst.part > 0 && worst.part < 1e-3);
}

/* No other number of steps between snapshots is better by more than the checkpoints, which it hardly changes. */
static void test_best_snapshots(void **state)
{
	ls_cluster c;

	(void)state;
	ls_cluster_init(&c);
	c.mtbf_hours = 200;
	c.snapshot_s = 2;
	ls_goodput best = ls_goodput_of(&c, 64, 1);
	double between = 200 * 3600 / 64.0;
	for (double every = 20; every < 2000; every *= 1.1) {
		double fallback = 2 * (30 + every) / (200 * 3600.0);
		double copies = 2 / every + 1 / best.interval_s;
		double lost = (every + 2) / 2 + 30 + fallback * (best.interval_s + 1) / 2;
		assert_true(1 / ((1 + copies) * (1 + lost / between)) < best.part + 1e-4);
	}
}

/* An interval that is given: the best one comes to the same, others to less. */
static void test_given_snapshots(void **state)
{
	ls_cluster c;

	(void)state;
	ls_cluster_init(&c);
	c.mtbf_hours = 200;
	c.snapshot_s = 2;
	ls_goodput best = ls_goodput_of(&c, 64, 1);
	double steps = (double)best.snapshot_every;
	assert_true(ls_goodput_with_snapshots(&c, 64, 1, steps).part == best.part);
	assert_true(ls_goodput_with_snapshots(&c, 64, 1, 2 * steps).part < best.part);
	assert_true(ls_goodput_with_snapshots(&c, 64, 1, steps / 2).part < best.part);
	assert_int_equal(ls_goodput_with_snapshots(&c, 64, 1, 2 * steps).snapshot_every, 2 * best.snapshot_every);
}

TEST_MAIN(test_goodput, test_best_interval, test_snapshots, test_best_snapshots, test_given_snapshots)
