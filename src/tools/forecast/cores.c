/*
 * cores.c - threads that share cores: with more threads than cores, all are slower.
 */
#include <math.h>

#include "tools/forecast/simulation.h"

/* Part of the communication thread that messages keep while there are sums and updates to compute. */
#define COMM_SHARE 0.7

static double threads_of(const ls_simulation *g, const ls_group_state *a)
{
	return (double)(a->group->kind.devices * g->s->o.profile->threads);
}

/* Threads that work on update tasks: the communication thread, as far as messages leave it time, and the threads of
 * devices that wait. */
static double helpers(const ls_simulation *g, int p)
{
	const ls_group_state *a = &g->state[p];
	if (a->task_count == 0)
		return 0;
	return fmax(1 - COMM_SHARE, 1 - ls_links_load(&g->links, p)) + (a->waits ? threads_of(g, a) : 0);
}

static double demand(const ls_simulation *g, int p)
{
	const ls_group_state *a = &g->state[p];
	double computing = a->run_left > 0 && !g->s->o.replayed ? threads_of(g, a) : 0;
	return computing + helpers(g, p) + ls_links_load(&g->links, p);
}

static double cores_of(const ls_simulation *g, const ls_group_state *a)
{
	int64_t cores = a->group->kind.cores;
	return cores > 0 ? (double)cores : threads_of(g, a) + 1;
}

void ls_simulation_share_cores(ls_simulation *g)
{
	double shared = (double)g->s->o.cluster->shared_cores, all = 0;

	for (int p = 0; p < g->s->groups; p++)
		g->slow[p] = 1;
	for (int p = 0; p < g->s->groups; p++)
		g->links.port[p].capacity[LS_LIMIT_COMM] = g->state[p].task_count > 0 ? COMM_SHARE : 1;
	ls_links_share(&g->links, g->slow);
	for (int p = 0; p < g->s->groups; p++) {
		double wanted = demand(g, p);
		all += wanted * (double)g->s->group[p].kind.count;
		g->slow[p] = shared > 0 ? 1 : fmin(1, cores_of(g, &g->state[p]) / fmax(wanted, 1e-9));
	}
	int full = shared > 0 && all > shared, slower = full;
	for (int p = 0; p < g->s->groups; p++) {
		g->slow[p] = full ? shared / all : g->slow[p];
		slower |= g->slow[p] < 1;
	}
	if (slower)
		ls_links_share(&g->links, g->slow);
}

double ls_simulation_run_rate(const ls_simulation *g, int p)
{
	return g->s->o.replayed ? 1 : g->slow[p];
}

/* Blocks of a shard are updated in parallel. */
double ls_simulation_task_rate(const ls_simulation *g, int p)
{
	return helpers(g, p) * g->slow[p];
}
