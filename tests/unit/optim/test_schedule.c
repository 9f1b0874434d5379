/* Schedules at their corners. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>
#include <string.h>

#include "optim/schedule.h"
#include "unit/test_main.h"

static ls_schedule_options make(const char *name, uint64_t warmup, uint64_t total)
{
	return (ls_schedule_options){
		.name = name, .lr = 0.8, .lr_min = 0.1, .warmup = warmup, .total = total, .every = 30, .factor = 0.5
	};
}

static void assert_rate(const ls_schedule_options *options, uint64_t step, double expected)
{
	double got = ls_schedule_rate(options, step);
	if (!(fabs(got - expected) <= 1e-14))
		fail_msg("%s, warm-up %d, step %d: %.17g instead of %.17g", options->name, (int)options->warmup,
			 (int)step, got, expected);
}

static void test_warmup(void **state)
{
	(void)state;
	const ls_schedule_kind *kind;
	for (size_t i = 0; (kind = ls_schedule_at(i)); i++) {
		ls_schedule_options none = make(kind->name, 0, 100), one = make(kind->name, 1, 100);
		ls_schedule_options ten = make(kind->name, 10, 100), longer = make(kind->name, 200, 100);
		assert_rate(&none, 0, 0.8);
		assert_rate(&one, 0, 0.8);
		assert_rate(&one, 1, 0.8);
		assert_rate(&ten, 0, 0.08);
		assert_rate(&ten, 4, 0.4);
		assert_rate(&ten, 9, 0.8);
		assert_rate(&ten, 10, 0.8); /* the schedule itself starts here, from the top */
		assert_rate(&longer, 99, 0.4);
	}
}

static void test_constant(void **state)
{
	(void)state;
	ls_schedule_options o = make("constant", 0, 0);
	assert_rate(&o, 0, 0.8);
	assert_rate(&o, UINT64_MAX, 0.8);
}

static void test_step(void **state)
{
	(void)state;
	ls_schedule_options o = make("step", 5, 100);
	assert_rate(&o, 34, 0.8);
	assert_rate(&o, 35, 0.4);
	assert_rate(&o, 64, 0.4);
	assert_rate(&o, 65, 0.2);
	assert_rate(&o, 5 + 30 * 10, 0.8 / 1024.0);
}

static void test_cosine(void **state)
{
	(void)state;
	ls_schedule_options o = make("cosine", 20, 120);
	for (uint64_t t = 0; t <= 100; t++)
		assert_rate(&o, 20 + t, 0.1 + 0.7 * (1.0 + cos(M_PI * (double)t / 100.0)) / 2.0);
	assert_true(ls_schedule_rate(&o, 119) > 0.1);
	assert_rate(&o, 120, 0.1);
	assert_rate(&o, 1000000, 0.1);
}

static void test_linear(void **state)
{
	(void)state;
	ls_schedule_options o = make("linear", 20, 90);
	for (uint64_t t = 0; t <= 70; t++)
		assert_rate(&o, 20 + t, 0.8 - 0.01 * (double)t);
	assert_rate(&o, 91, 0.1);
	assert_rate(&o, UINT64_MAX, 0.1);
}

/* BERT's: a straight line up over the warm-up, the full rate behind it, and a straight line down to 0. */
static void test_bert(void **state)
{
	(void)state;
	ls_schedule_options o = { .name = "linear", .lr = 1e-4, .warmup = 10000, .total = 1000000 };
	assert_int_equal(ls_schedule_check(&o), LS_OK);
	for (uint64_t step = 0; step < 10000; step += 99)
		assert_rate(&o, step, 1e-4 * (double)(step + 1) / 10000.0);
	for (uint64_t step = 10000; step <= 1000000; step += 990)
		assert_rate(&o, step, 1e-4 * (double)(1000000 - step) / 990000.0);
	assert_true(ls_schedule_rate(&o, 9999) == 1e-4 && ls_schedule_rate(&o, 10000) == 1e-4);
	assert_true(ls_schedule_rate(&o, 999999) > 0.0 && ls_schedule_rate(&o, 1000000) == 0.0);
}

/* 100 steps: the full rate up to step 80, then a straight line. */
static void test_wsd(void **state)
{
	(void)state;
	ls_schedule_options o = make("wsd", 0, 100);
	assert_rate(&o, 0, o.lr);
	assert_rate(&o, 80, o.lr);
	assert_rate(&o, 90, (o.lr + o.lr_min) / 2.0);
	assert_rate(&o, 100, o.lr_min);
	assert_rate(&o, UINT64_MAX, o.lr_min);
	o = make("settle", 50, 150); /* the earlier name */
	assert_rate(&o, 49, o.lr);
	assert_rate(&o, 130, o.lr);
	assert_rate(&o, 140, (o.lr + o.lr_min) / 2.0);
}

static void assert_refused(const ls_schedule_options *options, const char *expected)
{
	assert_int_equal(ls_schedule_check(options), LS_EINVALID);
	if (!strstr(ls_last_error(), expected))
		fail_msg("'%s' does not mention '%s'", ls_last_error(), expected);
}

static void test_checks(void **state)
{
	(void)state;
	const ls_schedule_kind *kind;
	for (size_t i = 0; (kind = ls_schedule_at(i)); i++) {
		ls_schedule_options fine = make(kind->name, 3, 100);
		assert_int_equal(ls_schedule_check(&fine), LS_OK);
		fine.lr = NAN;
		assert_refused(&fine, "learning rate");
	}
	ls_schedule_options o = make("cosin", 0, 100);
	assert_refused(&o, "'cosine'");
	o = make("step", 0, 100);
	o.every = 0;
	assert_refused(&o, "options.lr_step_every");
	o = make("step", 0, 100);
	o.factor = 0.0;
	assert_refused(&o, "options.lr_step_factor");
	o = make("linear", 0, 0);
	assert_refused(&o, "number of steps");
	o = make("cosine", 0, 100);
	o.lr_min = 0.9;
	assert_refused(&o, "options.lr_min 0.9");
	o.lr_min = -1.0;
	assert_refused(&o, "options.lr_min -1");
}

/* needs_length is what the rates do: of all kinds, those depend on the length of the run that say so. */
static void test_needs_length(void **state)
{
	const ls_schedule_kind *kind;
	(void)state;
	for (size_t i = 0; (kind = ls_schedule_at(i)); i++) {
		ls_schedule_options short_run = make(kind->name, 0, 100), long_run = make(kind->name, 0, 200);
		int differs = 0;
		for (uint64_t step = 0; step < 100; step++)
			differs |= ls_schedule_rate(&short_run, step) != ls_schedule_rate(&long_run, step);
		if (differs != kind->needs_length)
			fail_msg("%s: needs_length is %d", kind->name, kind->needs_length);
	}
}

TEST_MAIN(test_warmup, test_constant, test_step, test_cosine, test_linear, test_checks, test_bert, test_wsd,
	  test_needs_length)
