/*
 * scene.h - who takes part in a simulated step: a cluster's nodes as parties, and what each has to do.
 *
 * A party is a number of nodes that behave alike, so that ten thousand of them are one. A few nodes are each a party of
 * their own: then shards of buckets are cut exactly as the exchange cuts them. Nodes of a kind whose speeds are spread
 * are a few parties, the slowest node by itself, for everybody waits for it.
 */
#ifndef LS_TOOLS_FORECAST_SCENE_H
#define LS_TOOLS_FORECAST_SCENE_H

#include <stdint.h>

#include "backends/profile.h"
#include "exchange/partition.h"
#include "tools/forecast/cluster.h"
#include "tools/forecast/links.h"
#include "tools/forecast/script.h"

/* What is asked. */
typedef struct ls_scene_options {
	const ls_profile *profile;
	const ls_cluster *cluster;
	int64_t servers; /* the last so many nodes own everything; 0: every node owns a share (allreduce) */
	int bf16;
	int64_t bucket_bytes; /* 0: training's default */
	int64_t microbatches; /* a device computes in a step, on average */
	int follow;           /* micro-batches are assigned in proportion to speeds (--share auto) */
	int rehearsed;        /* devices sleep through their profile: computing takes no core */
	int after;            /* others' way: exchange only after backward, and all of it before forward */
} ls_scene_options;

typedef struct ls_party {
	ls_machine_kind kind; /* count: nodes of the party */
	int worker, owner;    /* whether it computes; whether it owns */
	int first_owner;      /* number of its first node among owners */
	int64_t microbatches; /* of each of its devices */
	ls_script script;
} ls_party;

typedef struct ls_scene {
	ls_scene_options o;
	ls_partition plan;
	int exact; /* every party is one node */
	int64_t nodes, workers, owners;
	int parties;
	ls_party party[LS_PARTIES_MAX];
	double wire_bytes;                       /* of a float on the wire */
	double fold_s_a_float, update_s_a_float; /* on one thread: for one partial sum; and once */
} ls_scene;

ls_status ls_scene_make(ls_scene *out, const ls_scene_options *options);
void ls_scene_release(ls_scene *scene);

/* Bytes of one owner's shard of a bucket, on the wire; in a party of several nodes the mean over them. */
double ls_scene_shard(const ls_scene *scene, int bucket, const ls_party *owner);

/* Bytes of the largest shard of a bucket. */
double ls_scene_largest(const ls_scene *scene, int bucket);

/* Seconds of one thread to add up and update a party's shard of a bucket. */
double ls_scene_update(const ls_scene *scene, int bucket, const ls_party *owner);

/* Devices of a rehearsal sleep at their speed, but update at the machine's. */
static inline double ls_party_update_speed(const ls_scene *scene, const ls_party *party)
{
	return scene->o.rehearsed ? 1 : party->kind.speed;
}

/* How much slower than their mean the slowest of `count` nodes is, in standard deviations. */
double ls_slowest_of(int64_t count);

#endif
