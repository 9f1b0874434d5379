/*
 * schedule.c - learning rates. Steps count from 0; past the end of the run a rate stays where it ended.
 *
 *     warm-up   lr * (step + 1) / warmup                              for step < warmup; then, with t = step - warmup
 *     constant  lr
 *     step      lr * factor^floor(t / every)
 *     cosine    lr_min + (lr - lr_min) * (1 + cos(pi * t / span)) / 2        span = total - warmup
 *     linear    lr + (lr_min - lr) * t / span
 *     wsd       lr up to t = 4/5 span, then a straight line to lr_min (warm-up, stable, decay)
 *
 * As in PyTorch's schedulers lr_min is reached at t = span, one step after the last.
 */
#include "optim/schedule.h"

#include <math.h>
#include <string.h>

#include "base/names.h"
#include "optim/power.h"

/* How much of the run is behind, 0 .. 1. */
static double part_done(uint64_t step, uint64_t span)
{
	return step < span ? (double)step / (double)span : 1.0;
}

/* cos(pi*x) for x in [0, 1] by its series, folded to [0, 1/2] where 12 terms reach full precision. Not the C library's
 * cos(): that one's last bit depends on the processor, and nodes must agree. */
static double cosine_of_part(double x)
{
	const double pi = 3.14159265358979323846;
	double folded = x <= 0.5 ? x : 1.0 - x;
	double square = (pi * folded) * (pi * folded);
	double term = 1.0, sum = 1.0;
	for (int k = 1; k <= 12; k++) {
		term *= -square / (double)((2 * k - 1) * (2 * k));
		sum += term;
	}
	return x <= 0.5 ? sum : -sum;
}

static double rate_constant(const ls_schedule_options *options, uint64_t step, uint64_t span)
{
	(void)step, (void)span;
	return options->lr;
}

static double rate_step(const ls_schedule_options *options, uint64_t step, uint64_t span)
{
	(void)span;
	return options->lr * ls_power(options->factor, step / options->every);
}

static double rate_cosine(const ls_schedule_options *options, uint64_t step, uint64_t span)
{
	double height = (1.0 + cosine_of_part(part_done(step, span))) / 2.0;
	return options->lr_min + (options->lr - options->lr_min) * height;
}

static double rate_linear(const ls_schedule_options *options, uint64_t step, uint64_t span)
{
	return options->lr + (options->lr_min - options->lr) * part_done(step, span);
}

/* The full rate for as long as it helps, then a decay that averages out the noise of the last steps: what a run of
 * known length gains from both (docs/decisions/0005). */
#define DECAY_FROM 0.8

static double rate_wsd(const ls_schedule_options *options, uint64_t step, uint64_t span)
{
	double done = part_done(step, span), decay = (done - DECAY_FROM) / (1.0 - DECAY_FROM);
	return options->lr + (options->lr_min - options->lr) * (decay > 0.0 ? decay : 0.0);
}

static const ls_schedule_kind kinds[] = {
	{ "wsd", "warm-up, stable, decay: lr, then down to lr_min over the last fifth of the run", rate_wsd, 1 },
	{ "constant", "the same rate in every step", rate_constant, 0 },
	{ "step", "multiplied by lr_step_factor every lr_step_every steps", rate_step, 0 },
	{ "cosine", "half a cosine from lr down to lr_min", rate_cosine, 1 },
	{ "linear", "a straight line from lr down to lr_min", rate_linear, 1 },
};

const ls_schedule_kind *ls_schedule_at(size_t i)
{
	return i < sizeof(kinds) / sizeof(*kinds) ? &kinds[i] : NULL;
}

static const char *name_at(size_t i)
{
	const ls_schedule_kind *kind = ls_schedule_at(i);
	return kind ? kind->name : NULL;
}

const char *ls_schedule_name(const char *name)
{
	return name && !strcmp(name, "settle") ? "wsd" : name;
}

const ls_schedule_kind *ls_schedule_find(const char *name)
{
	return ls_schedule_at(ls_name_row(ls_schedule_name(name), name_at));
}

/* From lr to lr_min over a known number of steps. */
static ls_status check_descent(const ls_schedule_options *o)
{
	if (!isfinite(o->lr_min) || o->lr_min < 0.0)
		return ls_fail(LS_EINVALID, "schedule %s ends at options.lr_min %g; it must be 0 or more", o->name,
			       o->lr_min);
	if (o->lr_min > o->lr)
		return ls_fail(LS_EINVALID, "schedule %s decays to options.lr_min %g, which is above options.lr %g",
			       o->name, o->lr_min, o->lr);
	if (o->total == 0)
		return ls_fail(LS_EINVALID, "schedule %s needs the number of steps of the run", o->name);
	return LS_OK;
}

ls_status ls_schedule_check(const ls_schedule_options *o)
{
	const ls_schedule_kind *kind = ls_schedule_find(o->name);
	if (!kind)
		return ls_name_unknown("schedule", o->name, name_at);
	if (!isfinite(o->lr) || o->lr < 0.0)
		return ls_fail(LS_EINVALID, "learning rate %g is not a number of 0 or more", o->lr);
	if (kind->rate == rate_step && o->every == 0)
		return ls_fail(LS_EINVALID, "schedule step needs options.lr_step_every, the steps between two changes");
	if (kind->rate == rate_step && (!isfinite(o->factor) || o->factor <= 0.0))
		return ls_fail(LS_EINVALID, "schedule step multiplies by %g; options.lr_step_factor must be above 0",
			       o->factor);
	return kind->needs_length ? check_descent(o) : LS_OK;
}

double ls_schedule_rate(const ls_schedule_options *options, uint64_t step)
{
	if (step < options->warmup)
		return options->lr * ((double)(step + 1) / (double)options->warmup);
	uint64_t span = options->total > options->warmup ? options->total - options->warmup : 0;
	return ls_schedule_find(options->name)->rate(options, step - options->warmup, span);
}
