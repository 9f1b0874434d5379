#include "tools/forecast/failures.h"

#include <math.h>

/* Between copies of `cost` seconds, with failures after which a copy is needed every `between`: where the derivative of
 * the useful part is 0. Young's sqrt(2 * cost * between) when failures are rare. */
static double best_interval(double cost, double between, double restart_s)
{
	return fmax(sqrt(2 * cost * (between + restart_s) + cost * cost), 1e-3);
}

/* Wall time per interval: its work, its checkpoint, and for each failure half of both and a restart. */
static ls_goodput with_checkpoints(const ls_cluster *c, double between)
{
	double interval = c->interval_s > 0 ? c->interval_s : best_interval(c->checkpoint_s, between, c->restart_s);
	double whole = interval + c->checkpoint_s;
	double lost = whole / between * (whole / 2 + c->restart_s);

	return (ls_goodput){ .part = interval / (whole + lost), .interval_s = interval };
}

static double between_failures(const ls_cluster *c, int64_t nodes)
{
	return c->mtbf_hours * 3600 / (double)nodes;
}

ls_goodput ls_goodput_with_snapshots(const ls_cluster *c, int64_t nodes, double step_s, double steps)
{
	double between = between_failures(c, nodes), every = steps * step_s;
	double fallback = fmin(1, (nodes == 2 ? 1 : 2) * (c->restart_s + every) / (c->mtbf_hours * 3600));
	double interval =
		c->interval_s > 0 ? c->interval_s : best_interval(c->checkpoint_s, between / fallback, c->restart_s);
	double copies = c->snapshot_s / every + c->checkpoint_s / interval;
	double lost = (every + c->snapshot_s) / 2 + c->restart_s + fallback * (interval + c->checkpoint_s) / 2;

	return (ls_goodput){ .part = 1 / ((1 + copies) * (1 + lost / between)),
			     .interval_s = interval,
			     .snapshot_every = (int64_t)steps,
			     .fallback = fallback };
}

ls_goodput ls_goodput_of(const ls_cluster *c, int64_t nodes, double step_s)
{
	if (c->mtbf_hours <= 0)
		return (ls_goodput){ .part = 1 };
	double between = between_failures(c, nodes);
	if (c->snapshot_s < 0 || nodes < 2 || !(step_s > 0))
		return with_checkpoints(c, between);
	double ideal = best_interval(c->snapshot_s, between, c->restart_s);
	return ls_goodput_with_snapshots(c, nodes, step_s, fmin(fmax(1, round(ideal / step_s)), 1e15));
}
