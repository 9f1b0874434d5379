#include "tools/forecast/scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optimizer.h"

/* Up to this number, nodes are simulated one by one; more nodes are grouped by kind. */
enum { EXACT_NODES = 6 };

/* Training's default on several nodes (src/trainer/trainer.c). */
#define BUCKET_BYTES_DEFAULT (1 << 20)

/* ---- speeds ------------------------------------------------------------------------------------------------------ */

/* The standard normal quantile, by Newton's method on erfc. */
static double quantile(double p)
{
	double x = 0;
	for (int i = 0; i < 60; i++) {
		double error = 0.5 * erfc(-x / sqrt(2)) - p, slope = exp(-x * x / 2) / sqrt(2 * M_PI);
		double step = error / fmax(slope, 1e-12);
		x -= fmax(-1, fmin(1, step));
	}
	return x;
}

/* Blom's approximation to the expected largest of `count` normal variates. */
double ls_slowest_of(int64_t count)
{
	return count < 2 ? 0 : quantile(((double)count - 0.375) / ((double)count + 0.25));
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static ls_status add_group(ls_scenario *s, const ls_machine_kind *kind, int64_t count, double speed, int worker,
			   int owner)
{
	if (count <= 0)
		return LS_OK;
	if (s->groups == LS_GROUPS_MAX)
		return ls_fail(LS_EUNSUPPORTED, "a cluster of more than %d kinds of nodes cannot be simulated",
			       LS_GROUPS_MAX);
	ls_node_group *p = &s->group[s->groups++];
	*p = (ls_node_group){ .kind = *kind, .worker = worker, .owner = owner, .first_owner = (int)s->owners };
	p->kind.count = count;
	p->kind.speed = speed;
	s->nodes += count;
	s->workers += worker ? count : 0;
	s->owners += owner ? count : 0;
	return LS_OK;
}

/* The slowest node by itself, and the others in three parts around their mean. */
static ls_status add_spread(ls_scenario *s, const ls_machine_kind *kind, int64_t count, int owner)
{
	double spread = s->o.cluster->spread;
	int64_t rest = count - 1, third = rest / 3;
	double slow = 1 / (1 + spread * ls_slowest_of(count));

	LS_TRY(add_group(s, kind, third, kind->speed * (1 + spread), 1, owner));
	LS_TRY(add_group(s, kind, rest - 2 * third, kind->speed, 1, owner));
	LS_TRY(add_group(s, kind, third, kind->speed / (1 + spread), 1, owner));
	return add_group(s, kind, 1, kind->speed * slow, 1, owner);
}

/* Speed of node i: expected order statistic, the slowest last. */
static double speed_of(const ls_scenario *s, const ls_machine_kind *kind, int64_t count, int64_t i)
{
	double spread = s->o.cluster->spread;
	if (!(spread > 0) || count < 2)
		return kind->speed;
	return kind->speed / (1 + spread * quantile(((double)i + 1 - 0.375) / ((double)count + 0.25)));
}

static ls_status add_workers(ls_scenario *s, const ls_machine_kind *kind, int64_t count, int owner)
{
	if (s->o.cluster->spread > 0 && count > 1 && !s->exact)
		return add_spread(s, kind, count, owner);
	for (int64_t i = 0; s->exact && i < count; i++)
		LS_TRY(add_group(s, kind, 1, speed_of(s, kind, count, i), 1, owner));
	return s->exact ? LS_OK : add_group(s, kind, count, kind->speed, 1, owner);
}

static ls_status add_servers(ls_scenario *s, const ls_machine_kind *kind, int64_t count)
{
	for (int64_t i = 0; s->exact && i < count; i++)
		LS_TRY(add_group(s, kind, 1, kind->speed, 0, 1));
	return s->exact ? LS_OK : add_group(s, kind, count, kind->speed, 0, 1);
}

/* Servers are the last nodes. */
static ls_status add_groups(ls_scenario *s)
{
	const ls_cluster *c = s->o.cluster;
	int64_t nodes = ls_cluster_nodes(c), first_server = nodes - s->o.servers, seen = 0;

	for (int pass = 0; pass < 2; pass++, seen = 0)
		for (size_t k = 0; k < c->kinds; k++) {
			const ls_machine_kind *kind = &c->kind[k];
			int64_t workers = first_server - seen < kind->count ? first_server - seen : kind->count;
			workers = workers > 0 ? workers : 0;
			if (pass == 0 && workers > 0 && kind->devices < 1)
				return ls_fail(
					LS_EINVALID,
					"nodes '%s' have no devices, so they can only be servers: list them last and "
					"use options.strategy ps with options.servers",
					kind->name);
			LS_TRY(pass == 0 ? add_workers(s, kind, workers, s->o.servers == 0)
					 : add_servers(s, kind, kind->count - workers));
			seen += kind->count;
		}
	return LS_OK;
}

/* ---- work of each group ------------------------------------------------------------------------------------------ */

/* Mean speed of all devices that compute. */
static double mean_speed(const ls_scenario *s)
{
	double speeds = 0, devices = 0;
	for (int p = 0; p < s->groups; p++)
		if (s->group[p].worker) {
			double count = (double)(s->group[p].kind.count * s->group[p].kind.devices);
			speeds += count * s->group[p].kind.speed;
			devices += count;
		}
	return speeds / devices;
}

static void assign(ls_scenario *s)
{
	double mean = mean_speed(s);
	for (int p = 0; p < s->groups; p++) {
		double wish = (double)s->o.microbatches * s->group[p].kind.speed / mean;
		s->group[p].microbatches = !s->o.follow ? s->o.microbatches : wish < 1 ? 1 : llround(wish);
	}
}

/* Each device of a node sums one range of all devices' gradients; on a single node it also updates that range. */
static double give_seconds(const ls_scenario *s, const ls_node_group *p)
{
	double devices = (double)p->kind.devices, seconds = 0;
	if (s->nodes > 1 && p->kind.devices > 1)
		seconds = (devices + 1) * s->fold_s_per_float;
	else if (s->nodes == 1)
		seconds = s->update_s_per_float + (devices > 1 ? devices * s->fold_s_per_float : 0);
	return seconds / devices;
}

/* A measured exchange among a node's devices: per bucket where the exchange comes after backward, else per step. */
static void set_inside(const ls_scenario *s, const ls_node_group *p, ls_timeline_options *o)
{
	double seconds = p->kind.inside_ms / 1e3;

	o->give_s_per_float = s->nodes == 1 ? s->update_s_per_float : 0;
	if (s->o.after)
		o->give_s_per_float += seconds / (double)s->plan.width;
	else
		o->give_s = seconds;
}

static ls_status make_timelines(ls_scenario *s)
{
	for (int i = 0; i < s->groups; i++) {
		ls_node_group *p = &s->group[i];
		ls_timeline_options o = { .profile = s->o.profile,
					  .plan = &s->plan,
					  .microbatches = p->microbatches,
					  .alone = s->nodes == 1,
					  .after = s->o.after,
					  .give_s_per_float = give_seconds(s, p) };
		if (p->kind.inside_ms > 0)
			set_inside(s, p, &o);
		if (p->worker)
			LS_TRY(ls_timeline_make(&p->timeline, &o));
	}
	return LS_OK;
}

static ls_status make(ls_scenario *s)
{
	const ls_profile *profile = s->o.profile;
	int64_t nodes = ls_cluster_nodes(s->o.cluster), bucket = s->o.bucket_bytes;

	if (s->o.servers < 0 || s->o.servers >= nodes)
		return ls_fail(LS_EINVALID, "%lld servers of %lld nodes: at least one node must compute",
			       (long long)s->o.servers, (long long)nodes);
	s->exact = nodes <= EXACT_NODES;
	bucket = bucket > 0 ? bucket : BUCKET_BYTES_DEFAULT;
	s->wire_bytes = s->o.bf16 ? 2 : 4;
	s->fold_s_per_float = sizeof(float) / (s->o.cluster->copy_gb_per_s * 1e9);
	s->update_s_per_float = profile->update_s / (double)profile->reachable;
	LS_TRY(add_groups(s));
	LS_TRY(ls_partition_init(&s->plan, (size_t)profile->reachable, (size_t)(profile->extra + s->nodes),
				 LS_NORM_BLOCK, (size_t)bucket / sizeof(float), (int)s->owners));
	assign(s);
	return make_timelines(s);
}

ls_status ls_scenario_make(ls_scenario *out, const ls_scenario_options *options)
{
	ls_scenario *s = out;

	*s = (ls_scenario){ .o = *options };
	ls_status status = make(s);
	if (status != LS_OK)
		ls_scenario_release(s);
	return status;
}

void ls_scenario_release(ls_scenario *s)
{
	for (int p = 0; p < s->groups; p++)
		ls_timeline_release(&s->group[p].timeline);
	ls_partition_release(&s->plan);
	*s = (ls_scenario){ 0 };
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static double bucket_floats(const ls_scenario *s, int bucket)
{
	return (double)(s->plan.bucket[bucket].end - s->plan.bucket[bucket].begin);
}

static double shard_floats(const ls_scenario *s, int bucket, const ls_node_group *owner)
{
	size_t begin, end;

	if (!owner->owner)
		return 0;
	if (!s->exact)
		return bucket_floats(s, bucket) / (double)s->owners;
	ls_partition_shard(&s->plan, bucket, owner->first_owner, &begin, &end);
	return (double)(end - begin);
}

/* Step statistics are always sent in fp32. */
static double float_bytes(const ls_scenario *s, int bucket)
{
	return bucket == s->plan.buckets - 1 ? sizeof(float) : s->wire_bytes;
}

double ls_scenario_shard(const ls_scenario *s, int bucket, const ls_node_group *owner)
{
	return shard_floats(s, bucket, owner) * float_bytes(s, bucket);
}

double ls_scenario_largest(const ls_scenario *s, int bucket)
{
	int64_t blocks = (int64_t)s->plan.bucket[bucket].blocks, most = (blocks + s->owners - 1) / s->owners;
	double floats = (double)most * (double)s->plan.block;
	return fmin(floats, bucket_floats(s, bucket)) * float_bytes(s, bucket);
}

double ls_scenario_update(const ls_scenario *s, int bucket, const ls_node_group *owner)
{
	double partials = (double)s->workers, opening = s->o.bf16 ? 2 : 1;
	return shard_floats(s, bucket, owner) *
	       ((partials * opening + 1) * s->fold_s_per_float + s->update_s_per_float);
}
