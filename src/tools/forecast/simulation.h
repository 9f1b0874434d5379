/*
 * simulation.h - steps that are played through: who is where in its timeline, what is on its way, and whom the waiting
 * is blamed on.
 *
 *     simulate.c  the loop over events: messages, devices and time
 *     cores.c     how fast whatever runs is, where cores are shared
 *     bottleneck.c   what the steps came to, and what limited them
 */
#ifndef LS_TOOLS_FORECAST_SIMULATION_H
#define LS_TOOLS_FORECAST_SIMULATION_H

#include "tools/forecast/links.h"
#include "tools/forecast/simulate.h"

/* Steps until it repeats, and those that are looked at. */
enum { LS_STEPS_WARM = 3, LS_STEPS_KEPT = 4 };

typedef struct ls_delivery {
	double at;
	ls_channel *channel;
	ls_parcel parcel;
} ls_delivery;

/* Work on a shard that all partial sums have come for. */
typedef struct ls_update_task {
	int bucket;
	double left; /* seconds of one thread */
} ls_update_task;

typedef struct ls_group_state {
	const ls_node_group *group;
	/* devices: all of a group's do the same */
	size_t at;
	int64_t step;
	double run_left;
	int waits;
	double waited; /* seconds of the steps that are kept */
	double began;  /* when those did; negative: they have not */
	double ended;
	/* owners */
	double *partials;      /* (buckets) nodes whose partial sums are here */
	int64_t *summed;       /* (buckets) steps that were updated */
	ls_update_task *tasks; /* first in, first out */
	int task_count;
	/* values */
	int64_t *values; /* (buckets) steps whose new values are all here */
	int *came;       /* (buckets) owning groups whose values of the next step are here */
	double sent;     /* bytes in the steps that are kept */
	double busy;     /* seconds that its link was full, of the same */
} ls_group_state;

typedef struct ls_simulation {
	const ls_scenario *s;
	ls_links links;
	double now;
	ls_group_state state[LS_GROUPS_MAX];
	int *owning; /* (buckets) groups that own some of it */
	ls_delivery *under_way;
	size_t deliveries, room;
	double slow[LS_GROUPS_MAX];
	double blame[LS_LIMITS], blame_update, blame_latency;
	int failed;
} ls_simulation;

/* The first group's steps are those that count; servers have none of their own. */
static inline int ls_simulation_is_kept(const ls_simulation *g)
{
	return g->state[0].began >= 0 && g->state[0].ended == 0;
}

/* cores.c: start messages, share links and cores; then seconds of computing, and of tasks, that pass in a second */
void ls_simulation_share_cores(ls_simulation *g);
double ls_simulation_run_rate(const ls_simulation *g, int group);
double ls_simulation_task_rate(const ls_simulation *g, int group);

/* bottleneck.c */
void ls_simulation_blame(ls_simulation *g, double seconds); /* what devices wait for, while they do */
void ls_simulation_summarize(const ls_simulation *g, ls_simulated *out);

#endif
