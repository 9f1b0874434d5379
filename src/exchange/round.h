/*
 * round.h - what the assignment of one step comes to: who sums what, in which order.
 *
 *     micro-batches -> a device's partial sums (schedule) -> the node's partial sums (gather) -> the whole (combine)
 */
#ifndef LS_EXCHANGE_ROUND_H
#define LS_EXCHANGE_ROUND_H

#include "base/memory.h"
#include "base/status.h"
#include "exchange/tree.h"

/* Where an input of `gather` lies. */
typedef struct ls_round_source {
	int device, slot;
} ls_round_source;

/* A partial sum of some node, as an owner sees it. */
typedef struct ls_round_partial {
	ls_partial partial;
	int node, output; /* its number among the node's partial sums */
	int row;          /* its number among those of other nodes; -1: it is this node's */
} ls_round_partial;

typedef struct ls_round {
	uint64_t step;
	int64_t microbatches;
	int devices, nodes, node;
	int flat;                   /* a node's partial sums are all added up, in order: what needs no fixed tree */
	ls_device_schedule *device; /* (devices) */
	int active;                 /* devices with micro-batches */
	ls_fold gather;             /* this node's device partial sums -> its partial sums */
	ls_round_source *source;    /* (gather.inputs) */
	ls_fold combine;            /* all nodes' partial sums -> one */
	ls_round_partial *partial;  /* (combine.inputs) in order of first micro-batch */
	int *computes;              /* (nodes) whether the node has micro-batches */
	/* scratch */
	ls_partial *listed;
	ls_arena arena;
} ls_round;

/*
 * What memory follows from: the gradients a device holds while it sums its micro-batches, the partial sums of this
 * node, and those of all other nodes, each at most.
 */
typedef struct ls_round_room {
	int stores, outputs, others;
} ls_round_room;

/* Room for any steps of up to `microbatches` micro-batches, of which devices and nodes compute one contiguous run each.
 * */
ls_round_room ls_round_room_any(int64_t microbatches, int workers, int devices);

/* Room for both. */
ls_round_room ls_round_room_both(ls_round_room a, ls_round_room b);

ls_status ls_round_init(ls_round *round, int64_t microbatches, int nodes, int node, int devices, int flat);
void ls_round_release(ls_round *round);

/* Fill in for the assignment of a step. */
void ls_round_assign(ls_round *round, uint64_t step, int64_t microbatches, const int *node_of, const int *device_of);

/* The room that this step takes. */
ls_round_room ls_round_room_of(const ls_round *round);

/* Whether `gather` has anything to add: else the node's partial sums are its devices' partial sums. */
int ls_round_gathers(const ls_round *round);

#endif
