/*
 * scenario.h - who takes part in a simulated step: a cluster's nodes as groups, and what each has to do.
 *
 * A group is a number of nodes that behave alike, so that ten thousand of them are one. A few nodes are each a group of
 * their own: then shards of buckets are cut exactly as the exchange cuts them. Nodes of a kind whose speeds are spread
 * are a few groups, the slowest node by itself, for everybody waits for it.
 */
#ifndef LS_TOOLS_FORECAST_SCENARIO_H
#define LS_TOOLS_FORECAST_SCENARIO_H

#include <stdint.h>

#include "backends/profile.h"
#include "exchange/partition.h"
#include "tools/forecast/cluster.h"
#include "tools/forecast/links.h"
#include "tools/forecast/timeline.h"

/* What is asked. */
typedef struct ls_scenario_options {
	const ls_profile *profile;
	const ls_cluster *cluster;
	int64_t servers; /* the last so many nodes own everything; 0: every node owns a share (allreduce) */
	int bf16;
	int64_t bucket_bytes; /* 0: training's default */
	int64_t microbatches; /* a device computes in a step, on average */
	int follow;           /* micro-batches are assigned in proportion to speeds (--share auto) */
	int replayed;         /* devices sleep through their profile: computing takes no core */
	int after;            /* others' way: exchange only after backward, and all of it before forward */
} ls_scenario_options;

typedef struct ls_node_group {
	ls_machine_kind kind; /* count: nodes of the group */
	int worker, owner;    /* whether it computes; whether it owns */
	int first_owner;      /* number of its first node among owners */
	int64_t microbatches; /* of each of its devices */
	ls_timeline timeline;
} ls_node_group;

typedef struct ls_scenario {
	ls_scenario_options o;
	ls_partition plan;
	int exact; /* every group is one node */
	int64_t nodes, workers, owners;
	int groups;
	ls_node_group group[LS_GROUPS_MAX];
	double wire_bytes;                           /* of a float on the wire */
	double fold_s_per_float, update_s_per_float; /* on one thread: for one partial sum; and once */
} ls_scenario;

ls_status ls_scenario_make(ls_scenario *out, const ls_scenario_options *options);
void ls_scenario_release(ls_scenario *scenario);

/* Bytes of one owner's shard of a bucket, on the wire; in a group of several nodes the mean over them. */
double ls_scenario_shard(const ls_scenario *scenario, int bucket, const ls_node_group *owner);

/* Bytes of the largest shard of a bucket. */
double ls_scenario_largest(const ls_scenario *scenario, int bucket);

/* Seconds of one thread to add up and update a group's shard of a bucket. */
double ls_scenario_update(const ls_scenario *scenario, int bucket, const ls_node_group *owner);

/* Replayed devices sleep at their speed, but update at the machine's. */
static inline double ls_node_group_update_speed(const ls_scenario *scenario, const ls_node_group *group)
{
	return scenario->o.replayed ? 1 : group->kind.speed;
}

/* How much slower than their mean the slowest of `count` nodes is, in standard deviations. */
double ls_slowest_of(int64_t count);

#endif
