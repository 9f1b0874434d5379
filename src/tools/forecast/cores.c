/*
 * cores.c - where more threads want to run than there are cores, all are slower.
 */
#include <math.h>

#include "tools/forecast/play.h"

/* Of its thread, what adding up and updating leave for messages while there is any of it. */
#define COMM_SHARE 0.7

static double threads_of(const ls_play *g, const ls_player *a)
{
	return (double)(a->party->kind.devices * g->s->o.profile->threads);
}

/* Threads that work on chores: the communication thread's, as far as messages leave it time, and those of devices that
 * wait. */
static double helpers(const ls_play *g, int p)
{
	const ls_player *a = &g->player[p];
	if (a->chore_count == 0)
		return 0;
	return fmax(1 - COMM_SHARE, 1 - ls_links_load(&g->links, p)) + (a->waits ? threads_of(g, a) : 0);
}

static double demand(const ls_play *g, int p)
{
	const ls_player *a = &g->player[p];
	double computing = a->run_left > 0 && !g->s->o.rehearsed ? threads_of(g, a) : 0;
	return computing + helpers(g, p) + ls_links_load(&g->links, p);
}

static double cores_of(const ls_play *g, const ls_player *a)
{
	int64_t cores = a->party->kind.cores;
	return cores > 0 ? (double)cores : threads_of(g, a) + 1;
}

void ls_play_share_cores(ls_play *g)
{
	double shared = (double)g->s->o.cluster->shared_cores, all = 0;

	for (int p = 0; p < g->s->parties; p++)
		g->slow[p] = 1;
	for (int p = 0; p < g->s->parties; p++)
		g->links.port[p].capacity[LS_LIMIT_COMM] = g->player[p].chore_count > 0 ? COMM_SHARE : 1;
	ls_links_share(&g->links, g->slow);
	for (int p = 0; p < g->s->parties; p++) {
		double wanted = demand(g, p);
		all += wanted * (double)g->s->party[p].kind.count;
		g->slow[p] = shared > 0 ? 1 : fmin(1, cores_of(g, &g->player[p]) / fmax(wanted, 1e-9));
	}
	int full = shared > 0 && all > shared, slower = full;
	for (int p = 0; p < g->s->parties; p++) {
		g->slow[p] = full ? shared / all : g->slow[p];
		slower |= g->slow[p] < 1;
	}
	if (slower)
		ls_links_share(&g->links, g->slow);
}

double ls_play_run_rate(const ls_play *g, int p)
{
	return g->s->o.rehearsed ? 1 : g->slow[p];
}

/* Blocks of a shard are worked on side by side. */
double ls_play_chore_rate(const ls_play *g, int p)
{
	return helpers(g, p) * g->slow[p];
}
