/*
 * bottleneck.c - the result of the simulated steps, and what limited them.
 */
#include <math.h>
#include <stdio.h>

#include "tools/forecast/simulation.h"

void ls_simulation_blame(ls_simulation *g, double seconds)
{
	int waiting = 0, updating = 0, flying = 0, limited[LS_LIMITS] = { 0 };

	for (int p = 0; p < g->s->groups; p++) {
		ls_group_state *a = &g->state[p];
		const ls_port *port = &g->links.port[p];
		int full = port->full[LS_LIMIT_OUT] || port->full[LS_LIMIT_IN] || port->full[LS_LIMIT_BOTH];
		waiting |= a->waits;
		updating |= a->task_count > 0;
		for (int k = 0; k < LS_LIMIT_OWNERS; k++)
			limited[k] |= port->full[k];
		if (ls_simulation_is_kept(g) && full)
			a->busy += seconds;
		if (a->waits && a->began >= 0)
			a->waited += seconds;
	}
	for (int i = 0; i < g->links.groups * g->links.groups; i++)
		flying |= g->links.channel[i].flying_count > 0;
	if (!waiting)
		return;
	for (int k = 0; k < LS_LIMIT_OWNERS; k++)
		g->blame[k] += limited[k] ? seconds : 0;
	g->blame[LS_LIMIT_OWNERS] += flying && !limited[LS_LIMIT_OUT] && !limited[LS_LIMIT_IN] ? seconds : 0;
	g->blame_update += updating && !flying ? seconds : 0;
	g->blame_latency += !updating && !flying ? seconds : 0;
}

/* All other groups wait for one group, which does not wait itself. */
static int has_straggler(const ls_scenario *s, const double *compute)
{
	double most = 0, least = INFINITY;
	for (int p = 0; p < s->groups; p++)
		if (s->group[p].worker) {
			most = fmax(most, compute[p]);
			least = fmin(least, compute[p]);
		}
	return most > 1.02 * least;
}

static const char *bottleneck(const ls_simulation *g, const ls_simulated *r, const double *compute)
{
	static const char *const names[LS_LIMITS] = { "links", "links", "links", "messages' thread", "owners' links" };
	int worst = 0;
	double slowest = 0;

	for (int p = 0; p < g->s->groups; p++)
		slowest = fmax(slowest, g->s->group[p].worker ? compute[p] : 0);
	if (g->s->nodes == 1 || slowest >= 0.93 * r->step_s)
		return has_straggler(g->s, compute) ? "slowest node" : "compute";
	for (int k = 1; k < LS_LIMITS; k++)
		if (g->blame[k] > g->blame[worst] * 1.05)
			worst = k;
	if (g->blame_update > g->blame[worst] && g->blame_update >= g->blame_latency)
		return "update";
	if (g->blame_latency > g->blame[worst])
		return "latency";
	return g->s->o.servers > 0 && worst != LS_LIMIT_COMM ? "servers' links" : names[worst];
}

void ls_simulation_summarize(const ls_simulation *g, ls_simulated *r)
{
	double devices = 0, samples = 0, alone = 0, compute[LS_GROUPS_MAX] = { 0 };

	*r = (ls_simulated){ 0 };
	for (int p = 0; p < g->s->groups; p++) {
		const ls_group_state *a = &g->state[p];
		double count = (double)(a->group->kind.count * a->group->kind.devices);
		r->sent_bytes = fmax(r->sent_bytes, a->sent / LS_STEPS_KEPT);
		r->link_busy = fmax(r->link_busy, a->busy / (g->state[0].ended - g->state[0].began));
		if (!a->group->worker)
			continue;
		double step = (a->ended - a->began) / LS_STEPS_KEPT;
		double microbatches = (double)(a->group->microbatches * g->s->o.profile->batch);
		compute[p] = a->group->timeline.compute_s / a->group->kind.speed;
		r->step_s = fmax(r->step_s, step);
		r->compute_s += count * compute[p];
		r->exposed_s += count * a->waited / LS_STEPS_KEPT;
		samples += count * microbatches;
		alone += count * microbatches /
			 (compute[p] + g->s->o.profile->update_s / ls_node_group_update_speed(g->s, a->group));
		devices += count;
	}
	r->compute_s /= devices;
	r->exposed_s /= devices;
	r->samples_per_s = samples / r->step_s;
	r->efficiency = r->samples_per_s / alone;
	snprintf(r->bottleneck, sizeof(r->bottleneck), "%s", bottleneck(g, r, compute));
}
