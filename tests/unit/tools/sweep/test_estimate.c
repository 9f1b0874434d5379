/*
 * Estimated duration of a point from the time of one step, with made-up figures.
 */
#include "tools/sweep/estimate.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static ls_sweep_point point_of(const char *kind, const char *devices, int64_t nodes, const char *rate)
{
	ls_sweep_point p = { .job = { .model = "cnn",
				      .data = "glyphs",
				      .wire = "fp32",
				      .strategy = "allreduce",
				      .threads = 1,
				      .batch = 10,
				      .warmup = 20,
				      .steps = 100 } };

	snprintf(p.job.kind, sizeof(p.job.kind), "%s", kind);
	snprintf(p.job.rate, sizeof(p.job.rate), "%s", rate);
	assert_int_equal(ls_sweep_point_shape(&p, devices, nodes), LS_OK);
	assert_int_equal(ls_sweep_point_normalise(&p), LS_OK);
	return p;
}

static void expect(const ls_sweep_point *p, double step_s, double bytes, double seconds)
{
	ls_sweep_list list = { .repeat = 7 };
	ls_sweep_environment environment = { .list = &list };
	double got = ls_estimate_point(&environment, p, step_s, bytes);

	if (!(fabs(got - seconds) < 1e-6))
		fail_msg("%s: %g s, not %g", p->key, got, seconds);
}

static void test_bench(void **state)
{
	(void)state;
	ls_sweep_point p = point_of("bench", "1", 1, "");
	expect(&p, 0.1, 1e6, 0.5 + 7 * 120 * 0.1);
	expect(&p, 0, 1e6, 0); /* not known */
	p.repeat = 2;
	expect(&p, 0.1, 1e6, 0.5 + 2 * 120 * 0.1);
}

/* 100 MB each way over 1 Gbit/s take 0.8 s, longer than computing. */
static void test_links(void **state)
{
	(void)state;
	ls_sweep_point p = point_of("bench", "1", 2, "1gbit");
	expect(&p, 0.1, 100e6, 1 + 7 * 120 * 0.8);
	expect(&p, 1, 100e6, 1 + 7 * 120 * 1.0);
	snprintf(p.job.wire, sizeof(p.job.wire), "bf16");
	expect(&p, 0.1, 100e6, 1 + 7 * 120 * 0.4);
}

static void test_training(void **state)
{
	(void)state;
	ls_sweep_point p = point_of("train", "2", 1, "");
	p.job.steps = 0, p.job.epochs = 3, p.job.samples = 401;
	expect(&p, 0.1, 1e6, 7 * 0.5 + 7 * 3 * 21 * 0.1);
	p.launches = 2;
	expect(&p, 0.1, 1e6, 2 * 0.5 + 2 * 3 * 21 * 0.1);
	p.job.samples = 0; /* all of glyphs, 60,000 unless told otherwise */
	expect(&p, 0.1, 1e6, 2 * 0.5 + 2 * 3 * 3000 * 0.1);
	snprintf(p.job.data, sizeof(p.job.data), "nowhere");
	expect(&p, 0.1, 1e6, 0); /* of a size that is not known */
}

TEST_MAIN(test_bench, test_links, test_training)
