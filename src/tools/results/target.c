#include "tools/results/target.h"

#include <math.h>
#include <stdlib.h>

#include "base/median.h"

enum { LEAST_SEEDS = 3 }; /* of which one is left without the best and the worst */

static int has_failed(const ls_point_launch *launch)
{
	return launch->reason[0] != '\0';
}

int ls_target_counts(const ls_point *point, size_t i)
{
	int replaced =
		i + 1 < point->launch_count && point->launches[i + 1].again && !has_failed(&point->launches[i + 1]);
	return !has_failed(&point->launches[i]) && !replaced;
}

double ls_target_best(const ls_point *point, size_t launch)
{
	double best = 0;

	for (size_t i = 0; i < point->test_count; i++)
		if (point->tests[i].launch == (int64_t)launch)
			best = fmax(best, point->tests[i].accuracy);
	return best;
}

/* Without the smallest and the largest; infinity stands for a seed that did not reach the target. */
static double trimmed_mean(double *values, size_t count)
{
	double sum = 0;

	if (count < LEAST_SEEDS)
		return 0;
	ls_sort_numbers(values, count);
	for (size_t i = 1; i + 1 < count; i++)
		sum += values[i];
	return isfinite(sum) ? sum / (double)(count - 2) : 0;
}

ls_status ls_target_summarize(const ls_point *point, ls_target_summary *out)
{
	size_t room = point->launch_count > 0 ? point->launch_count : 1;
	double *seconds = calloc(2 * room, sizeof(*seconds)), *epochs = seconds + room;
	ls_target_summary s = { 0 };

	if (!seconds)
		return ls_fail(LS_EMEMORY, "no memory for %zu seeds", room);
	for (size_t i = 0; i < point->launch_count; i++) {
		const ls_point_launch *launch = &point->launches[i];
		int reached = launch->target_s > 0;
		if (!ls_target_counts(point, i))
			continue;
		seconds[s.seeds] = reached ? launch->target_s : INFINITY;
		epochs[s.seeds++] = reached ? launch->target_epochs : INFINITY;
		s.reached += reached;
	}
	s.seconds = trimmed_mean(seconds, s.seeds);
	s.epochs = trimmed_mean(epochs, s.seeds);
	free(seconds);
	*out = s;
	return LS_OK;
}
