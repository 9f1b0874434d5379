#include "cluster/pace.h"

void ls_pace_trained(ls_pace *p, double seconds)
{
	if (seconds >= LS_PACE_GOOD_S)
		p->restarts = 0;
}

int ls_pace_restart(ls_pace *p, int most)
{
	return p->restarts++ < most;
}

int ls_pace_may_regroup(const ls_pace *p, double trained_s)
{
	return p->wait_s <= 0 || trained_s >= p->wait_s;
}

void ls_pace_regroup(ls_pace *p, double now)
{
	int is_soon = p->has_regrouped && now - p->regrouped_at < LS_PACE_QUIET_S + 2 * p->wait_s;
	double wait = is_soon ? 2 * p->wait_s : 0;

	if (is_soon && wait < LS_PACE_WAIT_S)
		wait = LS_PACE_WAIT_S;
	p->wait_s = wait < LS_PACE_WAIT_MOST_S ? wait : LS_PACE_WAIT_MOST_S;
	p->regrouped_at = now;
	p->has_regrouped = 1;
}
