/*
 * scenario.h - input of the simulation: the nodes of a cluster as groups, and the work of each.
 *
 * A group is a number of nodes that behave alike, so that ten thousand nodes can be one group. In a small cluster each
 * node is a group of its own, and buckets are cut into shards exactly as the exchange does. A kind of nodes whose
 * speeds vary becomes a few groups, with the slowest node in its own group, because all others wait for it.
 */
#ifndef LS_TOOLS_FORECAST_SCENARIO_H
#define LS_TOOLS_FORECAST_SCENARIO_H

#include <stdint.h>

#include "backends/profile.h"
#include "exchange/partition.h"
#include "tools/forecast/cluster.h"
#include "tools/forecast/links.h"
#include "tools/forecast/timeline.h"

typedef struct ls_scenario_options {
	const ls_profile *profile;
	const ls_cluster *cluster;
	int64_t servers; /* the last N nodes own all shards (ps); 0: every node owns a shard (allreduce) */
	int bf16;
	int64_t bucket_bytes; /* 0: training's default */
	int64_t microbatches; /* per device and step, on average */
	int follow;           /* micro-batches are assigned in proportion to speeds (--share auto) */
	int replayed;         /* simulated compute: takes no core */
	int after;            /* no overlap: the exchange begins after backward and ends before forward */
} ls_scenario_options;

typedef struct ls_node_group {
	ls_machine_kind kind; /* count: nodes of the group */
	int worker, owner;    /* whether it computes; whether it owns shards */
	int first_owner;      /* index of its first node among the owners */
	int64_t microbatches; /* per device */
	ls_timeline timeline;
} ls_node_group;

typedef struct ls_scenario {
	ls_scenario_options o;
	ls_partition plan;
	int exact; /* every group is one node */
	int64_t nodes, workers, owners;
	int groups;
	ls_node_group group[LS_GROUPS_MAX];
	double wire_bytes;                           /* per float */
	double fold_s_per_float, update_s_per_float; /* on one thread: to add one partial sum; to update */
} ls_scenario;

ls_status ls_scenario_make(ls_scenario *out, const ls_scenario_options *options);
void ls_scenario_release(ls_scenario *scenario);

/* Wire bytes of one owner's shard of a bucket; the mean over the nodes of the group. */
double ls_scenario_shard(const ls_scenario *scenario, int bucket, const ls_node_group *owner);

/* Bytes of the largest shard of a bucket. */
double ls_scenario_largest(const ls_scenario *scenario, int bucket);

/* Seconds that one thread takes to sum and update a group's shard of a bucket. */
double ls_scenario_update(const ls_scenario *scenario, int bucket, const ls_node_group *owner);

/* Devices with simulated compute sleep at their own speed, but update at the machine's. */
static inline double ls_node_group_update_speed(const ls_scenario *scenario, const ls_node_group *group)
{
	return scenario->o.replayed ? 1 : group->kind.speed;
}

/* How much slower than their mean the slowest of `count` nodes is, in standard deviations. */
double ls_slowest_of(int64_t count);

#endif
