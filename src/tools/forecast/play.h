/*
 * play.h - steps that are played through: who is where in its script, what is on its way, and whom the waiting is
 * blamed on.
 *
 *     simulate.c  the loop over events: messages, devices and time
 *     cores.c     how fast whatever runs is, where cores are shared
 *     verdict.c   what the steps came to, and what limited them
 */
#ifndef LS_TOOLS_FORECAST_PLAY_H
#define LS_TOOLS_FORECAST_PLAY_H

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
typedef struct ls_chore {
	int bucket;
	double left; /* seconds of one thread */
} ls_chore;

typedef struct ls_player {
	const ls_party *party;
	/* devices: all of a party's do the same */
	size_t at;
	int64_t step;
	double run_left;
	int waits;
	double waited; /* seconds of the steps that are kept */
	double began;  /* when those did; negative: they have not */
	double ended;
	/* owners */
	double *partials; /* (buckets) nodes whose partial sums are here */
	int64_t *summed;  /* (buckets) steps that were updated */
	ls_chore *chores; /* first in, first out */
	int chore_count;
	/* values */
	int64_t *values; /* (buckets) steps whose new values are all here */
	int *came;       /* (buckets) owning parties whose values of the next step are here */
	double sent;     /* bytes in the steps that are kept */
	double busy;     /* seconds that its link was full, of the same */
} ls_player;

typedef struct ls_play {
	const ls_scene *s;
	ls_links links;
	double now;
	ls_player player[LS_PARTIES_MAX];
	int *owning; /* (buckets) parties that own some of it */
	ls_delivery *under_way;
	size_t deliveries, room;
	double slow[LS_PARTIES_MAX];
	double blame[LS_LIMITS], blame_update, blame_latency;
	int failed;
} ls_play;

/* The first party's steps are those that count; servers have none of their own. */
static inline int ls_play_is_kept(const ls_play *g)
{
	return g->player[0].began >= 0 && g->player[0].ended == 0;
}

/* cores.c: start messages, share links and cores; then seconds of computing, and of chores, that pass in a second */
void ls_play_share_cores(ls_play *g);
double ls_play_run_rate(const ls_play *g, int party);
double ls_play_chore_rate(const ls_play *g, int party);

/* verdict.c */
void ls_play_blame(ls_play *g, double seconds); /* what devices wait for, while they do */
void ls_play_sum_up(const ls_play *g, ls_simulated *out);

#endif
