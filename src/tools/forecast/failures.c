#include "tools/forecast/failures.h"

#include <math.h>

/* Where the derivative of ls_goodput_of() is 0; Young's sqrt(2 * checkpoint * between) when failures are rare. */
static double best_interval(const ls_cluster *c, double between)
{
	return sqrt(2 * c->checkpoint_s * (between + c->restart_s) + c->checkpoint_s * c->checkpoint_s);
}

ls_goodput ls_goodput_of(const ls_cluster *c, int64_t nodes)
{
	if (c->mtbf_hours <= 0)
		return (ls_goodput){ .part = 1 };
	double between = c->mtbf_hours * 3600 / (double)nodes;
	double interval = c->interval_s > 0 ? c->interval_s : best_interval(c, between);
	interval = fmax(interval, 1e-3);
	/* wall time per interval: its work, its checkpoint, and for each failure half of both and a restart */
	double whole = interval + c->checkpoint_s;
	double lost = whole / between * (whole / 2 + c->restart_s);
	return (ls_goodput){ .part = interval / (whole + lost), .interval_s = interval };
}
