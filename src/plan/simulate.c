/*
 * simulate.c - a loop over events: what is under way goes on at constant rates until the next thing is done.
 */
#include "plan/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/window.h"
#include "plan/links.h"

/* Steps until it repeats, and those that are looked at. */
enum { STEPS_WARM = 3, STEPS_KEPT = 4 };

/* Of its thread, what adding up and updating leave for letters while there is any of it. */
#define COURIER_SHARE 0.7

/* Far more than any step has; whoever passes it goes round in circles. */
#define EVENTS_MAX 200000000

typedef struct delivery {
	double at;
	ls_channel *channel;
	ls_parcel parcel;
} delivery;

/* Work on a slice that all pieces have come for. */
typedef struct chore {
	int bucket;
	double left; /* seconds of one thread */
} chore;

typedef struct player {
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
	double *pieces; /* (buckets) nodes whose pieces are here */
	chore *chores;  /* first in, first out */
	int chore_count;
	/* values */
	int64_t *values; /* (buckets) steps whose new values are all here */
	int *came;       /* (buckets) owning parties whose values of the next step are here */
	double sent;     /* bytes in the steps that are kept */
	double busy;     /* seconds that its link was full, of the same */
} player;

typedef struct play {
	const ls_scene *s;
	ls_links links;
	double now;
	player player[LS_PARTIES_MAX];
	int *owning; /* (buckets) parties that own some of it */
	delivery *under_way;
	size_t deliveries, room;
	double slow[LS_PARTIES_MAX];
	double blame[LS_LIMITS], blame_update, blame_latency;
	int failed;
} play;

static int buckets(const play *g)
{
	return g->s->plan.buckets;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Nodes that a node of the party sends to at once. */
static double peers_of(const play *g, int p)
{
	return (double)(g->s->party[p].owner ? g->s->nodes - 1 : g->s->owners);
}

static void open_ports(play *g)
{
	for (int p = 0; p < g->s->parties; p++) {
		const ls_machine_kind *kind = &g->s->party[p].kind;
		double way = kind->gbit_per_s * 1e9 / 8, both = kind->both_gbit_per_s * 1e9 / 8;
		ls_port *port = &g->links.port[p];
		port->capacity[LS_LIMIT_OUT] = port->capacity[LS_LIMIT_IN] = way;
		port->capacity[LS_LIMIT_BOTH] = 2 * (both > 0 && both < way ? both : way);
		port->capacity[LS_LIMIT_COURIER] = 1;
		for (int q = 0; q < g->s->parties; q++) {
			ls_channel *c = ls_links_channel(&g->links, p, q);
			int self = p == q;
			c->fan = (double)(g->s->party[q].kind.count - self);
			c->fan_in = (double)(kind->count - self);
			c->window = (double)ls_window_of(way / fmax(1, peers_of(g, p)), (int)g->s->nodes - 1);
		}
	}
}

/* In a party of many nodes a bucket has a slice on few of them, and other buckets on others. */
static int lanes_of(const ls_scene *s)
{
	int64_t blocks = (int64_t)s->plan.bucket[s->plan.buckets > 1].blocks;
	return s->exact || blocks >= s->owners ? 1 : (int)(s->owners / blocks);
}

static ls_status make(play *g)
{
	size_t count = (size_t)buckets(g);

	LS_TRY(ls_links_init(&g->links, g->s->parties, 4 * buckets(g)));
	g->links.lanes = lanes_of(g->s);
	g->links.cpu_s_a_byte = g->s->o.cluster->net_ns_a_byte * 1e-9;
	g->links.cpu_s_a_letter = g->s->o.cluster->letter_us * 1e-6;
	open_ports(g);
	g->room = 64;
	g->under_way = calloc(g->room, sizeof(*g->under_way));
	g->owning = calloc(count, sizeof(*g->owning));
	int failed = g->owning == NULL || g->under_way == NULL;
	for (int p = 0; p < g->s->parties; p++) {
		player *a = &g->player[p];
		*a = (player){ .party = &g->s->party[p], .began = -1 };
		a->pieces = calloc(count, sizeof(*a->pieces));
		a->values = calloc(count, sizeof(*a->values));
		a->came = calloc(count, sizeof(*a->came));
		a->chores = calloc(count + 1, sizeof(*a->chores));
		failed |= a->pieces == NULL || a->values == NULL || a->came == NULL || a->chores == NULL;
		for (int b = 0; !failed && b < buckets(g); b++)
			g->owning[b] += ls_scene_slice(g->s, b, a->party) > 0;
	}
	return failed ? ls_fail(LS_EMEMORY, "no memory to simulate %zu buckets", count) : LS_OK;
}

static void release(play *g)
{
	for (int p = 0; p < g->s->parties; p++) {
		free(g->player[p].pieces);
		free(g->player[p].values);
		free(g->player[p].came);
		free(g->player[p].chores);
	}
	free(g->owning);
	free(g->under_way);
	ls_links_release(&g->links);
}

/* ---- letters ----------------------------------------------------------------------------------------------------- */

/* One way, in seconds. */
static double latency(const play *g, int from, int to)
{
	return fmax(g->s->party[from].kind.latency_us, g->s->party[to].kind.latency_us) * 1e-6;
}

/* The first party's steps are those that count; servers have none of their own. */
static int is_kept(const play *g)
{
	return g->player[0].began >= 0 && g->player[0].ended == 0;
}

/* A party's slice of a bucket on its way, from one of its nodes or to one. */
static void send(play *g, int from, int to, int bucket, int pull)
{
	const ls_scene *s = g->s;
	const ls_party *owner = &s->party[pull ? from : to];
	double bytes = ls_scene_slice(s, bucket, owner), cap = INFINITY;
	const ls_channel *c = ls_links_channel(&g->links, from, to);

	if (g->links.lanes > 1) {
		double way = g->links.port[pull ? from : to].capacity[LS_LIMIT_OUT], peers = pull ? c->fan : c->fan_in;
		cap = way / fmax(1, peers) * bytes / ls_scene_largest(s, bucket);
	}
	if (c->fan > 0 && bytes > 0) {
		ls_links_send(&g->links, from, to,
			      (ls_parcel){ .bucket = bucket,
					   .pull = pull,
					   .bytes = bytes,
					   .letter = s->exact ? bytes : fmax(bytes, ls_scene_largest(s, bucket)),
					   .cap = cap });
		if (is_kept(g))
			g->player[from].sent += bytes * c->fan;
	}
}

static void add_chore(play *g, int p, int bucket)
{
	player *a = &g->player[p];
	a->pieces[bucket] = 0;
	a->chores[a->chore_count++] =
		(chore){ .bucket = bucket, .left = ls_scene_update(g->s, bucket, a->party) / a->party->kind.speed };
}

static void take_pieces(play *g, int p, int bucket, double nodes)
{
	player *a = &g->player[p];
	if (!(ls_scene_slice(g->s, bucket, a->party) > 0))
		return;
	a->pieces[bucket] += nodes;
	if (a->pieces[bucket] >= (double)g->s->workers - 0.5)
		add_chore(g, p, bucket);
}

static void take_values(play *g, int p, int bucket)
{
	player *a = &g->player[p];
	if (++a->came[bucket] == g->owning[bucket]) {
		a->came[bucket] = 0;
		a->values[bucket]++;
	}
}

/* A node's values go to every worker; a party of several nodes keeps its own and sends them to its others. */
static void send_values(play *g, int p, int bucket)
{
	for (int q = 0; q < g->s->parties; q++)
		if (g->s->party[q].worker)
			send(g, p, q, bucket, 1);
	if (g->s->party[p].worker && ls_links_channel(&g->links, p, p)->fan == 0)
		take_values(g, p, bucket);
}

static void push(play *g, int p, int bucket)
{
	if (g->s->nodes == 1)
		return;
	for (int q = 0; q < g->s->parties; q++)
		if (g->s->party[q].owner)
			send(g, p, q, bucket, 0);
	if (g->s->party[p].owner)
		take_pieces(g, p, bucket, 1);
}

static void deliver(play *g, const delivery *d)
{
	if (d->parcel.pull)
		take_values(g, d->channel->to, d->parcel.bucket);
	else
		take_pieces(g, d->channel->to, d->parcel.bucket, d->channel->fan_in);
}

static void through(void *context, ls_channel *channel, ls_parcel parcel)
{
	play *g = context;

	if (g->deliveries == g->room) {
		delivery *more = realloc(g->under_way, 2 * g->room * sizeof(*more));
		if (more == NULL) {
			g->failed = 1;
			return;
		}
		g->under_way = more;
		g->room *= 2;
	}
	g->under_way[g->deliveries++] = (delivery){ .at = g->now + latency(g, channel->from, channel->to),
						    .channel = channel,
						    .parcel = parcel };
}

static void deliver_due(play *g)
{
	for (size_t i = 0; i < g->deliveries;) {
		if (g->under_way[i].at > g->now + 1e-12) {
			i++;
			continue;
		}
		delivery d = g->under_way[i];
		memmove(&g->under_way[i], &g->under_way[i + 1], (--g->deliveries - i) * sizeof(d));
		deliver(g, &d);
	}
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int has_values(const player *a, const ls_act *act)
{
	for (int b = act->first; b <= act->last; b++)
		if (a->values[b] < a->step)
			return 0;
	return 1;
}

static void end_step(play *g, player *a)
{
	a->at = 0;
	a->step++;
	if (a->step == STEPS_WARM)
		a->began = g->now;
	if (a->step == STEPS_WARM + STEPS_KEPT)
		a->ended = g->now;
}

/* On through the script until something takes time; returns whether there was anything to do. */
static int advance(play *g, int p)
{
	player *a = &g->player[p];
	const ls_script *script = &a->party->script;
	int moved = 0;

	while (a->party->worker && a->run_left <= 0 && a->ended == 0) {
		const ls_act *act = &script->act[a->at];
		a->waits = act->kind == LS_DO_NEED && !has_values(a, act);
		if (a->waits)
			return moved;
		if (act->kind == LS_DO_RUN)
			a->run_left = act->seconds / a->party->kind.speed;
		if (act->kind == LS_DO_GIVE)
			push(g, p, act->first);
		moved = 1;
		if (++a->at == script->count)
			end_step(g, a);
	}
	return moved;
}

/* ---- processors -------------------------------------------------------------------------------------------------- */

static double threads_of(const play *g, const player *a)
{
	return (double)(a->party->kind.devices * g->s->o.profile->threads);
}

/* Threads that work on chores: the courier's, as far as letters leave it time, and those of devices that wait. */
static double helpers(const play *g, int p)
{
	const player *a = &g->player[p];
	if (a->chore_count == 0)
		return 0;
	return fmax(1 - COURIER_SHARE, 1 - ls_links_load(&g->links, p)) + (a->waits ? threads_of(g, a) : 0);
}

static double demand(const play *g, int p)
{
	const player *a = &g->player[p];
	double computing = a->run_left > 0 && !g->s->o.rehearsed ? threads_of(g, a) : 0;
	return computing + helpers(g, p) + ls_links_load(&g->links, p);
}

static double cores_of(const play *g, const player *a)
{
	int64_t cores = a->party->kind.cores;
	return cores > 0 ? (double)cores : threads_of(g, a) + 1;
}

/* Where more threads want to run than there are cores, all are slower. */
static void share_cores(play *g)
{
	double shared = (double)g->s->o.cluster->shared_cores, all = 0;

	for (int p = 0; p < g->s->parties; p++)
		g->slow[p] = 1;
	for (int p = 0; p < g->s->parties; p++)
		g->links.port[p].capacity[LS_LIMIT_COURIER] = g->player[p].chore_count > 0 ? COURIER_SHARE : 1;
	ls_links_share(&g->links, g->slow);
	for (int p = 0; p < g->s->parties; p++) {
		double wanted = demand(g, p);
		all += wanted * (double)g->s->party[p].kind.count;
		g->slow[p] = shared > 0 ? 1 : fmin(1, cores_of(g, &g->player[p]) / fmax(wanted, 1e-9));
	}
	int crowded = shared > 0 && all > shared;
	for (int p = 0; p < g->s->parties; p++) {
		g->slow[p] = crowded ? shared / all : g->slow[p];
		crowded |= g->slow[p] < 1;
	}
	if (crowded)
		ls_links_share(&g->links, g->slow);
}

static double run_rate(const play *g, int p)
{
	return g->s->o.rehearsed ? 1 : g->slow[p];
}

/* Blocks of a slice are worked on side by side. */
static double chore_rate(const play *g, int p)
{
	return helpers(g, p) * g->slow[p];
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double next_event(const play *g)
{
	double next = ls_links_next(&g->links);

	for (size_t i = 0; i < g->deliveries; i++)
		next = fmin(next, fmax(0, g->under_way[i].at - g->now));
	for (int p = 0; p < g->s->parties; p++) {
		const player *a = &g->player[p];
		if (a->run_left > 0)
			next = fmin(next, a->run_left / run_rate(g, p));
		if (a->chore_count > 0)
			next = fmin(next, a->chores[0].left / chore_rate(g, p));
	}
	return next;
}

/* What devices wait for, while they do. */
static void note_blame(play *g, double seconds)
{
	int waiting = 0, updating = 0, flying = 0, limited[LS_LIMITS] = { 0 };

	for (int p = 0; p < g->s->parties; p++) {
		player *a = &g->player[p];
		const ls_port *port = &g->links.port[p];
		int full = port->full[LS_LIMIT_OUT] || port->full[LS_LIMIT_IN] || port->full[LS_LIMIT_BOTH];
		waiting |= a->waits;
		updating |= a->chore_count > 0;
		for (int k = 0; k < LS_LIMIT_OWNERS; k++)
			limited[k] |= port->full[k];
		if (is_kept(g) && full)
			a->busy += seconds;
		if (a->waits && a->began >= 0)
			a->waited += seconds;
	}
	for (int i = 0; i < g->links.parties * g->links.parties; i++)
		flying |= g->links.channel[i].flying_count > 0;
	if (!waiting)
		return;
	for (int k = 0; k < LS_LIMIT_OWNERS; k++)
		g->blame[k] += limited[k] ? seconds : 0;
	g->blame[LS_LIMIT_OWNERS] += flying && !limited[LS_LIMIT_OUT] && !limited[LS_LIMIT_IN] ? seconds : 0;
	g->blame_update += updating && !flying ? seconds : 0;
	g->blame_latency += !updating && !flying ? seconds : 0;
}

static void pass(play *g, double seconds)
{
	g->now += seconds;
	note_blame(g, seconds);
	for (int p = 0; p < g->s->parties; p++) {
		player *a = &g->player[p];
		if (a->run_left > 0) {
			a->run_left -= seconds * run_rate(g, p);
			a->run_left = a->run_left < 1e-12 ? 0 : a->run_left;
		}
		if (a->chore_count > 0)
			a->chores[0].left -= seconds * chore_rate(g, p);
	}
	ls_links_pass(&g->links, seconds, through, g);
	deliver_due(g);
	for (int p = 0; p < g->s->parties; p++) {
		player *a = &g->player[p];
		if (a->chore_count > 0 && a->chores[0].left < 1e-12) {
			int bucket = a->chores[0].bucket;
			memmove(a->chores, a->chores + 1, (size_t)--a->chore_count * sizeof(*a->chores));
			send_values(g, p, bucket);
		}
	}
}

static int is_over(const play *g)
{
	for (int p = 0; p < g->s->parties; p++)
		if (g->s->party[p].worker && g->player[p].ended == 0)
			return 0;
	return 1;
}

static ls_status run(play *g)
{
	for (int64_t events = 0; events < EVENTS_MAX; events++) {
		int moved = 0;
		do {
			moved = 0;
			for (int p = 0; p < g->s->parties; p++)
				moved |= advance(g, p);
		} while (moved);
		if (is_over(g))
			return LS_OK;
		share_cores(g);
		double next = next_event(g);
		if (isinf(next) || g->failed)
			break;
		pass(g, next);
	}
	return g->failed ? ls_fail(LS_EMEMORY, "no memory for letters under way")
			 : ls_fail(LS_EINVALID, "the simulated cluster came to a standstill at %g s", g->now);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Everybody waits for one party that does not wait itself. */
static int has_straggler(const ls_scene *s, const double *compute)
{
	double most = 0, least = INFINITY;
	for (int p = 0; p < s->parties; p++)
		if (s->party[p].worker) {
			most = fmax(most, compute[p]);
			least = fmin(least, compute[p]);
		}
	return most > 1.02 * least;
}

static const char *bottleneck(const play *g, const ls_simulated *r, const double *compute)
{
	static const char *const names[LS_LIMITS] = { "links", "links", "links", "letters' thread", "owners' links" };
	int worst = 0;
	double slowest = 0;

	for (int p = 0; p < g->s->parties; p++)
		slowest = fmax(slowest, g->s->party[p].worker ? compute[p] : 0);
	if (g->s->nodes == 1 || slowest >= 0.93 * r->step_s)
		return has_straggler(g->s, compute) ? "slowest node" : "compute";
	for (int k = 1; k < LS_LIMITS; k++)
		if (g->blame[k] > g->blame[worst] * 1.05)
			worst = k;
	if (g->blame_update > g->blame[worst] && g->blame_update >= g->blame_latency)
		return "update";
	if (g->blame_latency > g->blame[worst])
		return "latency";
	return g->s->o.servers > 0 && worst < LS_LIMIT_COURIER ? "servers' links" : names[worst];
}

static void sum_up(const play *g, ls_simulated *r)
{
	double devices = 0, samples = 0, alone = 0, compute[LS_PARTIES_MAX] = { 0 };

	*r = (ls_simulated){ 0 };
	for (int p = 0; p < g->s->parties; p++) {
		const player *a = &g->player[p];
		double count = (double)(a->party->kind.count * a->party->kind.devices);
		r->sent_bytes = fmax(r->sent_bytes, a->sent / STEPS_KEPT);
		r->link_busy = fmax(r->link_busy, a->busy / (g->player[0].ended - g->player[0].began));
		if (!a->party->worker)
			continue;
		double step = (a->ended - a->began) / STEPS_KEPT;
		double leaves = (double)(a->party->leaves * g->s->o.profile->batch);
		compute[p] = a->party->script.compute_s / a->party->kind.speed;
		r->step_s = fmax(r->step_s, step);
		r->compute_s += count * compute[p];
		r->exposed_s += count * a->waited / STEPS_KEPT;
		samples += count * leaves;
		alone += count * leaves / (compute[p] + g->s->o.profile->update_s / a->party->kind.speed);
		devices += count;
	}
	r->compute_s /= devices;
	r->exposed_s /= devices;
	r->samples_per_s = samples / r->step_s;
	r->efficiency = r->samples_per_s / alone;
	snprintf(r->bottleneck, sizeof(r->bottleneck), "%s", bottleneck(g, r, compute));
}

ls_status ls_simulate(const ls_scene *scene, ls_simulated *out)
{
	play *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return ls_fail(LS_EMEMORY, "no memory to simulate");
	g->s = scene;
	ls_status status = make(g);
	if (status == LS_OK)
		status = run(g);
	if (status == LS_OK)
		sum_up(g, out);
	release(g);
	free(g);
	return status;
}
