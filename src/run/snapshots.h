/*
 * snapshots.h - snapshots in memory: what a run goes on from when nodes are lost.
 *
 *     ls_snapshots_find()    of a run that is resumed: the newest that is whole among the nodes
 *     ls_snapshots_load()    it becomes the first node's state, as a checkpoint would
 *     ls_snapshots_begin()   before the first step: the file of this node (checkpoint/memory_file.h)
 *     ls_snapshots_take()    every now and then, between two steps, by all nodes
 *     ls_snapshots_end()     removes what is not needed any more
 *
 * A node keeps parameters, its shards of optimizer state, and a copy of the shards of the node before it in the ring:
 * any node may be lost, and what the others have is whole. It does not depend on how many there are then.
 *
 * Invariants
 *  1. No node begins a snapshot before all have the one before.
 *  2. The snapshots of earlier starts stay until all nodes have one of this start; but on a node without room for both
 *     they go when its file is made, and a loss before this start's first snapshot is recovered from the other nodes'
 *     copies if they are whole, else from disk.
 *  3. A snapshot is never what a run cannot do without: where there is no memory for it, the checkpoints on disk are.
 *
 * Cost: a copy of the parameters and of two shards on every node; a shard over the network, of neighbours at the same
 * time. How often is measured: all of it takes at most SHARE of the time.
 */
#ifndef LS_RUN_SNAPSHOTS_H
#define LS_RUN_SNAPSHOTS_H

#include "checkpoint/memory_file.h"
#include "run/memory_plan.h"
#include "run/setup.h"

enum { LS_SNAPSHOTS_FOUND = 32 }; /* that a node looks at: two slots of two starts of eight nodes on its host */

typedef struct ls_snapshots {
	const ls_setup *setup;
	char host[65], path[2048]; /* of this node; of the run, absolute */
	uint64_t run;              /* its number; 0: no snapshots */
	uint64_t generation;       /* of this start */
	ls_memory_file file;       /* of this node; none where there is no room */
	void *block;               /* (room) shards on their way */
	size_t room;
	int is_on;    /* snapshots are taken */
	int is_first; /* earlier starts' files are still there */

	uint64_t next;     /* the step after which one is due */
	uint64_t interval; /* steps */
	uint64_t last;     /* step of the last one, or of the start */
	double mark;       /* when that was */
	double cost_s;     /* how long the last one stopped training */

	/* of a run that is resumed */
	ls_memory_found mine[LS_SNAPSHOTS_FOUND];
	ls_memory_facts *all;  /* (nodes, LS_SNAPSHOTS_FOUND) */
	ls_memory_facts found; /* of the newest that is whole; sequence 0: none */
	int is_used;           /* the run goes on from it */
	int has_spoiled;       /* it could not be read to its end: the first node's stores have part of it */
	uint64_t on_disk;      /* then: the step of the newest checkpoint */
} ls_snapshots;

/* Whether settings ask for them. */
int ls_snapshots_wanted(const ls_train_options *options);

/* Bytes that those of earlier starts of the run hold on this host: they are given up where there is no room else. */
size_t ls_snapshots_held(const char *run);

/* Bytes they take on a node, in /dev/shm and beside it. */
size_t ls_snapshots_bytes(const ls_param_table *table, const ls_node_trainer_options *trainer, int nodes);

void ls_snapshots_init(ls_snapshots *snapshots, const ls_setup *setup);

/* By all nodes, before anything is loaded; the first has the lock of the run. */
ls_status ls_snapshots_find(ls_snapshots *snapshots);

/* By all nodes, where is_used: the first node's stores are then those of snapshots->found. LS_EFORMAT, on all nodes:
 * what was found cannot be read any more, and the stores are nobody's. */
ls_status ls_snapshots_load(ls_snapshots *snapshots);

/* By all nodes, once it is known where the run goes on. `generation`: of this start, the same on all nodes. */
ls_status ls_snapshots_begin(ls_snapshots *snapshots, uint64_t generation, uint64_t step);

static inline int ls_snapshots_is_due(const ls_snapshots *snapshots, uint64_t step)
{
	return snapshots->is_on && step == snapshots->next;
}

/* By all nodes, after step position->step; `seconds` that the run has taken. */
ls_status ls_snapshots_take(ls_snapshots *snapshots, const ls_ckpt_progress *position, double seconds);

/* The run comes to `status` on this node: only a node that has lost others, or fails, leaves its snapshots to the next
 * start. */
void ls_snapshots_end(ls_snapshots *snapshots, ls_status status);

#endif
