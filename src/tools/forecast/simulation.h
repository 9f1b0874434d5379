/*
 * simulation.h - state of a simulation: the position of each group in its timeline, messages in flight, and the causes
 * of waiting.
 *
 *     simulate.c    the event loop: messages, devices and time
 *     cores.c       speeds of threads that share cores
 *     bottleneck.c  the result, and what limited it
 */
#ifndef LS_TOOLS_FORECAST_SIMULATION_H
#define LS_TOOLS_FORECAST_SIMULATION_H

#include "tools/forecast/links.h"
#include "tools/forecast/simulate.h"

/* Steps of warm-up, and measured steps after them. */
enum { LS_STEPS_WARM = 3, LS_STEPS_KEPT = 4 };

typedef struct ls_delivery {
	double at;
	ls_channel *channel;
	ls_parcel parcel;
} ls_delivery;

/* Sum and update of a shard for which all partial sums have arrived. */
typedef struct ls_update_task {
	int bucket;
	double left; /* seconds of one thread */
} ls_update_task;

typedef struct ls_group_state {
	const ls_node_group *group;
	/* devices: all devices of a group do the same */
	size_t at;
	int64_t step;
	double run_left;
	int waits;
	double waited; /* seconds in the measured steps */
	double began;  /* time when those began; negative: not yet */
	double ended;
	/* owners */
	double *partials;      /* (buckets) nodes whose partial sums have arrived */
	int64_t *summed;       /* (buckets) steps updated so far */
	ls_update_task *tasks; /* first in, first out */
	int task_count;
	/* values */
	int64_t *values; /* (buckets) steps whose new values have all arrived */
	int *came;       /* (buckets) owner groups whose values of the next step have arrived */
	double sent;     /* bytes in the measured steps */
	double busy;     /* seconds in the measured steps in which its link was full */
} ls_group_state;

typedef struct ls_simulation {
	const ls_scenario *s;
	ls_links links;
	double now;
	ls_group_state state[LS_GROUPS_MAX];
	int *owning; /* (buckets) number of groups that own a shard */
	ls_delivery *under_way;
	size_t deliveries, room;
	double slow[LS_GROUPS_MAX];
	double blame[LS_LIMITS], blame_update, blame_latency;
	int failed;
} ls_simulation;

/* Whether the first group is in its measured steps; servers have no steps of their own. */
static inline int ls_simulation_is_kept(const ls_simulation *g)
{
	return g->state[0].began >= 0 && g->state[0].ended == 0;
}

/* cores.c: start messages, share links and cores; then the rates of computing and of update tasks, in seconds per
 * second */
void ls_simulation_share_cores(ls_simulation *g);
double ls_simulation_run_rate(const ls_simulation *g, int group);
double ls_simulation_task_rate(const ls_simulation *g, int group);

/* bottleneck.c */
void ls_simulation_blame(ls_simulation *g, double seconds); /* add to the causes of waiting */
void ls_simulation_summarize(const ls_simulation *g, ls_simulated *out);

#endif
