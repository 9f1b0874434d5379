/*
 * summation.h - the schedule of sums of one step: which node adds which partial sums, in which order.
 *
 *     micro-batches -> a device's partial sums (device) -> the node's partial sums (node_fold) -> the sum (total_fold)
 *
 * All three follow the fixed tree of tree.h, so the sum has the same bits for any assignment of micro-batches. A
 * strategy that gives up these bits may add in order instead: then a node has one partial sum, whatever it computed.
 */
#ifndef LS_EXCHANGE_SUMMATION_H
#define LS_EXCHANGE_SUMMATION_H

#include "base/memory.h"
#include "base/status.h"
#include "exchange/tree.h"

/* Where an input of `node_fold` lies. */
typedef struct ls_summation_source {
	int device, slot;
} ls_summation_source;

/* A partial sum of some node, as an owner sees it. */
typedef struct ls_summation_partial {
	ls_partial partial;
	int node, output; /* its number among the node's partial sums */
	int row;          /* its number among those of other nodes; -1: it is this node's */
} ls_summation_partial;

typedef struct ls_summation {
	uint64_t step;
	int64_t microbatches;
	int devices, nodes, node;
	int in_order;                  /* a node adds up all it has, in order, instead of by the tree */
	ls_device_schedule *device;    /* (devices) */
	int active;                    /* devices with micro-batches */
	ls_fold node_fold;             /* partial sums of this node's devices -> the node's */
	ls_summation_source *source;   /* (node_fold.inputs) */
	ls_fold total_fold;            /* partial sums of all nodes -> one */
	ls_summation_partial *partial; /* (total_fold.inputs) in order of first micro-batch */
	int *computes;                 /* (nodes) whether the node has micro-batches */
	/* scratch */
	ls_partial *listed;
	ls_arena arena;
} ls_summation;

/* What memory follows from, each at most: gradients a device holds while it sums its micro-batches, partial sums of
 * this node, and partial sums of all other nodes. */
typedef struct ls_summation_buffers {
	int stores, outputs, others;
} ls_summation_buffers;

/* For any steps of up to `microbatches` micro-batches, where devices and nodes compute one contiguous run each. */
ls_summation_buffers ls_summation_buffers_any(int64_t microbatches, int workers, int devices);

/* Enough for both. */
ls_summation_buffers ls_summation_buffers_max(ls_summation_buffers a, ls_summation_buffers b);

ls_status ls_summation_init(ls_summation *sum, int64_t microbatches, int nodes, int node, int devices, int in_order);
void ls_summation_release(ls_summation *sum);

/* Fill in for the assignment of a step. */
void ls_summation_assign(ls_summation *sum, uint64_t step, int64_t microbatches, const int *node_of,
			 const int *device_of);

/* For this step alone. */
ls_summation_buffers ls_summation_buffers_of(const ls_summation *sum);

/* Whether `node_fold` has anything to add: else the node's partial sums are its devices' partial sums. */
int ls_summation_folds(const ls_summation *sum);

#endif
