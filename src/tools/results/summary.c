/*
 * summary.c - the figures of a point: medians over launches and repeats, and two spreads.
 *
 * Repeats of one process share its memory layout, its cores and the mood of the machine in those seconds, so they agree
 * with each other more than two processes do. A figure is therefore the median over launches (processes) of the medians
 * over their repeats, and the spread is given twice: within launches, and between them. A launch on a busy machine is
 * kept, but counts only where no launch had a quiet one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "tools/results/results.h"

/* Of one core, used by others; and of all time, given to other virtual machines. */
static const double BUSY_LOAD = 0.2, BUSY_STEAL = 0.02;

int ls_launch_is_busy(const ls_point_launch *launch)
{
	return launch->load > BUSY_LOAD || launch->steal > BUSY_STEAL;
}

typedef struct figures {
	double median, least, most;
} figures;

/* Sorts the values. */
static figures figures_of(double *values, size_t n)
{
	if (n == 0)
		return (figures){ 0 };
	double median = ls_median(values, n);
	return (figures){ .median = median, .least = values[0], .most = values[n - 1] };
}

static double spread_of(figures f)
{
	return f.median > 0 ? (f.most - f.least) / f.median : 0;
}

/* Files before version 3 have repeats without launches: one launch made them all. */
static size_t launches_of(const ls_point *point)
{
	return point->launch_count > 0 ? point->launch_count : 1;
}

static int is_busy(const ls_point *point, size_t launch)
{
	return point->launch_count > 0 && point->launches[launch].busy;
}

/* The numbers `offset` bytes into each repeat of a launch, into `values`; returns how many. */
static size_t values_of(const ls_point *point, size_t launch, size_t offset, double *values)
{
	size_t n = 0;

	for (size_t i = 0; i < point->repeat_count; i++)
		if (point->launch_count == 0 || point->repeats[i].launch == (int64_t)launch)
			values[n++] = *(const double *)((const char *)&point->repeats[i] + offset);
	return n;
}

static int has_repeats(const ls_point *point, size_t launch)
{
	for (size_t i = 0; i < point->repeat_count; i++)
		if (point->launch_count == 0 || point->repeats[i].launch == (int64_t)launch)
			return 1;
	return 0;
}

static int has_quiet_launch(const ls_point *point)
{
	for (size_t k = 0; k < launches_of(point); k++)
		if (!is_busy(point, k) && has_repeats(point, k))
			return 1;
	return 0;
}

size_t ls_point_launches_done(const ls_point *point)
{
	size_t done = 0;

	for (size_t k = 0; k < launches_of(point); k++) {
		int replaced = k + 1 < point->launch_count && point->launches[k + 1].again && has_repeats(point, k + 1);
		done += has_repeats(point, k) && !replaced;
	}
	return done;
}

/* Room for the values of one launch, and for the medians and spreads of all. */
typedef struct scratch {
	double *values, *medians, *spreads;
} scratch;

/* The median over launches that count of their medians; `between` and `within` may be NULL. */
static double median_of(const ls_point *point, size_t offset, const scratch *room, double *within, figures *between)
{
	int quiet = has_quiet_launch(point);
	size_t count = 0;

	for (size_t k = 0; k < launches_of(point); k++) {
		size_t n = quiet && is_busy(point, k) ? 0 : values_of(point, k, offset, room->values);
		if (n == 0)
			continue;
		figures f = figures_of(room->values, n);
		room->medians[count] = f.median;
		room->spreads[count++] = spread_of(f);
	}
	figures all = figures_of(room->medians, count);
	if (within)
		*within = figures_of(room->spreads, count).median;
	if (between)
		*between = all;
	return all.median;
}

static void keep_extremes(ls_point *point)
{
	int quiet = has_quiet_launch(point);

	point->samples_per_s_min = INFINITY;
	point->samples_per_s_max = 0;
	for (size_t i = 0; i < point->repeat_count; i++) {
		double rate = point->repeats[i].samples_per_s;
		if (quiet && is_busy(point, (size_t)point->repeats[i].launch))
			continue;
		point->samples_per_s_min = fmin(point->samples_per_s_min, rate);
		point->samples_per_s_max = fmax(point->samples_per_s_max, rate);
	}
}

ls_status ls_point_summarize(ls_point *point)
{
	size_t n = point->repeat_count, launches = launches_of(point);
	double *memory = calloc(n + 2 * launches, sizeof(*memory));
	scratch room = { memory, memory + n, memory + n + launches };
	figures between;

	if (!memory)
		return ls_fail(LS_EMEMORY, "no memory for %zu repeats", n);
	if (n > 0) {
		point->wall_s = median_of(point, offsetof(ls_point_repeat, wall_s), &room, NULL, NULL);
		point->step_ms = median_of(point, offsetof(ls_point_repeat, step_ms), &room, NULL, NULL);
		point->samples_per_s = median_of(point, offsetof(ls_point_repeat, samples_per_s), &room,
						 &point->spread_within, &between);
		point->spread_between = spread_of(between);
		point->busy = point->launch_count > 0 && !has_quiet_launch(point);
		keep_extremes(point);
	}
	free(memory);
	return LS_OK;
}
