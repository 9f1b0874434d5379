/*
 * simulate.c - the event loop: everything proceeds at constant rates until the next event.
 */
#include "tools/forecast/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/window.h"
#include "tools/forecast/simulation.h"

/* Far more events than any step has: the simulation does not end. */
#define EVENTS_MAX 200000000

static int buckets(const ls_simulation *g)
{
	return g->s->plan.buckets;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Number of nodes that a node of the group sends to at once. */
static double peers_of(const ls_simulation *g, int p)
{
	return (double)(g->s->group[p].owner ? g->s->nodes - 1 : g->s->owners);
}

static void open_ports(ls_simulation *g)
{
	for (int p = 0; p < g->s->groups; p++) {
		const ls_machine_kind *kind = &g->s->group[p].kind;
		double way = kind->gbit_per_s * 1e9 / 8, both = kind->both_gbit_per_s * 1e9 / 8;
		ls_port *port = &g->links.port[p];
		port->capacity[LS_LIMIT_OUT] = port->capacity[LS_LIMIT_IN] = way;
		port->capacity[LS_LIMIT_BOTH] = 2 * (both > 0 && both < way ? both : way);
		port->capacity[LS_LIMIT_COMM] = 1;
		for (int q = 0; q < g->s->groups; q++) {
			ls_channel *c = ls_links_channel(&g->links, p, q);
			int self = p == q;
			c->fan = (double)(g->s->group[q].kind.count - self);
			c->fan_in = (double)(kind->count - self);
			c->window = (double)ls_window_of(way / fmax(1, peers_of(g, p)), (int)g->s->nodes - 1);
		}
	}
}

/* In a group of many nodes, each bucket has shards on a few nodes, different ones per bucket. */
static int lanes_of(const ls_scenario *s)
{
	int64_t blocks = (int64_t)s->plan.bucket[s->plan.buckets > 1].blocks;
	return s->exact || blocks >= s->owners ? 1 : (int)(s->owners / blocks);
}

static ls_status make(ls_simulation *g)
{
	size_t count = (size_t)buckets(g);

	LS_TRY(ls_links_init(&g->links, g->s->groups, 4 * buckets(g)));
	g->links.lanes = lanes_of(g->s);
	g->links.cpu_s_per_byte = g->s->o.cluster->net_ns_per_byte * 1e-9;
	g->links.cpu_s_a_message = g->s->o.cluster->message_us * 1e-6;
	open_ports(g);
	g->room = 64;
	g->under_way = calloc(g->room, sizeof(*g->under_way));
	g->owning = calloc(count, sizeof(*g->owning));
	int failed = !g->owning || !g->under_way;
	for (int p = 0; p < g->s->groups; p++) {
		ls_group_state *a = &g->state[p];
		*a = (ls_group_state){ .group = &g->s->group[p], .began = -1 };
		a->partials = calloc(count, sizeof(*a->partials));
		a->summed = calloc(count, sizeof(*a->summed));
		a->values = calloc(count, sizeof(*a->values));
		a->came = calloc(count, sizeof(*a->came));
		a->tasks = calloc(count + 1, sizeof(*a->tasks));
		failed |= !a->partials || !a->summed || !a->values || !a->came || !a->tasks;
		for (int b = 0; !failed && b < buckets(g); b++)
			g->owning[b] += ls_scenario_shard(g->s, b, a->group) > 0;
	}
	return failed ? ls_fail(LS_EMEMORY, "no memory to simulate %zu buckets", count) : LS_OK;
}

static void release(ls_simulation *g)
{
	for (int p = 0; p < g->s->groups; p++) {
		free(g->state[p].partials);
		free(g->state[p].summed);
		free(g->state[p].values);
		free(g->state[p].came);
		free(g->state[p].tasks);
	}
	free(g->owning);
	free(g->under_way);
	ls_links_release(&g->links);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* One way, in seconds. */
static double latency(const ls_simulation *g, int from, int to)
{
	return fmax(g->s->group[from].kind.latency_us, g->s->group[to].kind.latency_us) * 1e-6;
}

/* Send a group's shard of a bucket: reduce-scatter to the owner, or with `gather` all-gather from the owner. */
static void send(ls_simulation *g, int from, int to, int bucket, int gather)
{
	const ls_scenario *s = g->s;
	const ls_node_group *owner = &s->group[gather ? from : to];
	double bytes = ls_scenario_shard(s, bucket, owner), cap = INFINITY;
	const ls_channel *c = ls_links_channel(&g->links, from, to);

	if (g->links.lanes > 1) {
		double way = g->links.port[gather ? from : to].capacity[LS_LIMIT_OUT],
		       peers = gather ? c->fan : c->fan_in;
		cap = way / fmax(1, peers) * bytes / ls_scenario_largest(s, bucket);
	}
	if (c->fan > 0 && bytes > 0) {
		ls_links_send(&g->links, from, to,
			      (ls_parcel){ .step = gather ? g->state[from].summed[bucket] : g->state[from].step,
					   .rank = bucket == buckets(g) - 1 ? -1 : bucket, /* see exchange/outbox.c */
					   .bucket = bucket,
					   .gather = gather,
					   .bytes = bytes,
					   .message = s->exact ? bytes : fmax(bytes, ls_scenario_largest(s, bucket)),
					   .cap = cap });
		if (ls_simulation_is_kept(g))
			g->state[from].sent += bytes * c->fan;
	}
}

static void add_task(ls_simulation *g, int p, int bucket)
{
	ls_group_state *a = &g->state[p];
	a->partials[bucket] = 0;
	a->tasks[a->task_count++] = (ls_update_task){ .bucket = bucket,
						      .left = ls_scenario_update(g->s, bucket, a->group) /
							      ls_node_group_update_speed(g->s, a->group) };
}

static void take_partials(ls_simulation *g, int p, int bucket, double nodes)
{
	ls_group_state *a = &g->state[p];
	if (!(ls_scenario_shard(g->s, bucket, a->group) > 0))
		return;
	a->partials[bucket] += nodes;
	if (a->partials[bucket] >= (double)g->s->workers - 0.5)
		add_task(g, p, bucket);
}

static void take_values(ls_simulation *g, int p, int bucket)
{
	ls_group_state *a = &g->state[p];
	if (++a->came[bucket] == g->owning[bucket]) {
		a->came[bucket] = 0;
		a->values[bucket]++;
	}
}

/* All-gather: new values go to every worker, also to the other nodes of the owner's group. */
static void send_values(ls_simulation *g, int p, int bucket)
{
	for (int q = 0; q < g->s->groups; q++)
		if (g->s->group[q].worker)
			send(g, p, q, bucket, 1);
	g->state[p].summed[bucket]++;
	if (g->s->group[p].worker && ls_links_channel(&g->links, p, p)->fan == 0)
		take_values(g, p, bucket);
}

static void reduce_scatter(ls_simulation *g, int p, int bucket)
{
	if (g->s->nodes == 1)
		return;
	for (int q = 0; q < g->s->groups; q++)
		if (g->s->group[q].owner)
			send(g, p, q, bucket, 0);
	if (g->s->group[p].owner)
		take_partials(g, p, bucket, 1);
}

static void deliver(ls_simulation *g, const ls_delivery *d)
{
	if (d->parcel.gather)
		take_values(g, d->channel->to, d->parcel.bucket);
	else
		take_partials(g, d->channel->to, d->parcel.bucket, d->channel->fan_in);
}

static void through(void *context, ls_channel *channel, ls_parcel parcel)
{
	ls_simulation *g = context;

	if (g->deliveries == g->room) {
		ls_delivery *more = realloc(g->under_way, 2 * g->room * sizeof(*more));
		if (!more) {
			g->failed = 1;
			return;
		}
		g->under_way = more;
		g->room *= 2;
	}
	g->under_way[g->deliveries++] = (ls_delivery){ .at = g->now + latency(g, channel->from, channel->to),
						       .channel = channel,
						       .parcel = parcel };
}

static void deliver_due(ls_simulation *g)
{
	for (size_t i = 0; i < g->deliveries;) {
		if (g->under_way[i].at > g->now + 1e-12) {
			i++;
			continue;
		}
		ls_delivery d = g->under_way[i];
		memmove(&g->under_way[i], &g->under_way[i + 1], (--g->deliveries - i) * sizeof(d));
		deliver(g, &d);
	}
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int has_values(const ls_group_state *a, const ls_action *action)
{
	for (int b = action->first; b <= action->last; b++)
		if (a->values[b] < a->step + action->of_this_step)
			return 0;
	return 1;
}

static void end_step(ls_simulation *g, ls_group_state *a)
{
	a->at = 0;
	a->step++;
	if (a->step == LS_STEPS_WARM)
		a->began = g->now;
	if (a->step == LS_STEPS_WARM + LS_STEPS_KEPT)
		a->ended = g->now;
}

/* Proceed through the timeline until an action takes time; returns whether there was an action. */
static int advance(ls_simulation *g, int p)
{
	ls_group_state *a = &g->state[p];
	const ls_timeline *timeline = &a->group->timeline;
	int moved = 0;

	while (a->group->worker && a->run_left <= 0 && a->ended == 0) {
		const ls_action *action = &timeline->action[a->at];
		a->waits = action->kind == LS_DO_NEED && !has_values(a, action);
		if (a->waits)
			return moved;
		if (action->kind == LS_DO_RUN)
			a->run_left = action->seconds / a->group->kind.speed;
		if (action->kind == LS_DO_GIVE)
			reduce_scatter(g, p, action->first);
		moved = 1;
		if (++a->at == timeline->count)
			end_step(g, a);
	}
	return moved;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double next_event(const ls_simulation *g)
{
	double next = ls_links_next(&g->links);

	for (size_t i = 0; i < g->deliveries; i++)
		next = fmin(next, fmax(0, g->under_way[i].at - g->now));
	for (int p = 0; p < g->s->groups; p++) {
		const ls_group_state *a = &g->state[p];
		if (a->run_left > 0)
			next = fmin(next, a->run_left / ls_simulation_run_rate(g, p));
		if (a->task_count > 0)
			next = fmin(next, a->tasks[0].left / ls_simulation_task_rate(g, p));
	}
	return next;
}

static void pass(ls_simulation *g, double seconds)
{
	g->now += seconds;
	ls_simulation_blame(g, seconds);
	for (int p = 0; p < g->s->groups; p++) {
		ls_group_state *a = &g->state[p];
		if (a->run_left > 0) {
			a->run_left -= seconds * ls_simulation_run_rate(g, p);
			a->run_left = a->run_left < 1e-12 ? 0 : a->run_left;
		}
		if (a->task_count > 0)
			a->tasks[0].left -= seconds * ls_simulation_task_rate(g, p);
	}
	ls_links_pass(&g->links, seconds, through, g);
	deliver_due(g);
	for (int p = 0; p < g->s->groups; p++) {
		ls_group_state *a = &g->state[p];
		if (a->task_count > 0 && a->tasks[0].left < 1e-12) {
			int bucket = a->tasks[0].bucket;
			memmove(a->tasks, a->tasks + 1, (size_t)--a->task_count * sizeof(*a->tasks));
			send_values(g, p, bucket);
		}
	}
}

static int is_over(const ls_simulation *g)
{
	for (int p = 0; p < g->s->groups; p++)
		if (g->s->group[p].worker && g->state[p].ended == 0)
			return 0;
	return 1;
}

static ls_status run(ls_simulation *g)
{
	for (int64_t events = 0; events < EVENTS_MAX; events++) {
		int moved = 0;
		do {
			moved = 0;
			for (int p = 0; p < g->s->groups; p++)
				moved |= advance(g, p);
		} while (moved);
		if (is_over(g))
			return LS_OK;
		ls_simulation_share_cores(g);
		double next = next_event(g);
		if (isinf(next) || g->failed)
			break;
		pass(g, next);
	}
	return g->failed ? ls_fail(LS_EMEMORY, "no memory for messages in flight")
			 : ls_fail(LS_EINVALID,
				   "the simulation stopped at %g s: no event is left, but steps are not done", g->now);
}

ls_status ls_simulate(const ls_scenario *scenario, ls_simulated *out)
{
	ls_simulation *g = calloc(1, sizeof(*g));

	if (!g)
		return ls_fail(LS_EMEMORY, "no memory to simulate");
	g->s = scenario;
	ls_status status = make(g);
	if (status == LS_OK)
		status = run(g);
	if (status == LS_OK)
		ls_simulation_summarize(g, out);
	release(g);
	free(g);
	return status;
}
