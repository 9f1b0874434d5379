/*
 * assigner.h - the assignment of a step's micro-batches to nodes and devices: contiguous runs, a node's run cut over
 * its devices.
 *
 * Invariants
 *  1. Runs are in node order, then in device order, and cover all micro-batches. Assignment decides times and never
 *     bits.
 *  2. A node with a weight above 0 gets a micro-batch as long as there are as many micro-batches as such nodes; one
 *     with weight 0 (a server) gets none.
 *  3. Everything is a function of what all nodes know, so that they agree without asking: sizes, weights, and the
 *     seconds of steps that are complete everywhere.
 *
 * With fixed weights shares are proportional, by largest remainder. An assigner that follows speeds gives each
 * micro-batch to the node that would be done with it first, a node of D devices taking as long for one micro-batch as
 * for D.
 */
#ifndef LS_EXCHANGE_ASSIGNER_H
#define LS_EXCHANGE_ASSIGNER_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_assigner {
	int nodes, workers;
	int follows;     /* speeds decide, once they are known */
	int *devices;    /* (nodes) 0: computes nothing */
	double *weight;  /* (nodes) relative shares; when following: micro-batches per second, as of the last change */
	double *speed;   /* (nodes) micro-batches per second, smoothed; 0: not known yet */
	int64_t *count;  /* (nodes) scratch */
	int64_t *other;  /* (nodes) scratch */
	int64_t steps;   /* learned from */
	int known;       /* weights are speeds by now */
	int64_t changes; /* how often the assignment changed */
} ls_assigner;

/* `devices` and `weight` (nodes) are copied. */
ls_status ls_assigner_init(ls_assigner *assigner, int nodes, const int *devices, const double *weight, int follows);
void ls_assigner_release(ls_assigner *assigner);

/* cut (nodes + 1): node i gets the micro-batches [cut[i], cut[i + 1]). */
void ls_assigner_assign(ls_assigner *assigner, int64_t microbatches, int64_t *cut);

/* cut (devices + 1) of the run [first, last): even, and along whole partial sums of the tree
 * where that costs nothing. */
void ls_assign_devices(int64_t first, int64_t last, int devices, int64_t *cut);

/* A complete step: how many micro-batches each node had, and the seconds its devices computed, summed over
 * micro-batches. */
void ls_assigner_learn(ls_assigner *assigner, const int64_t *cut, const double *seconds);

#endif
