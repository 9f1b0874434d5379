/*
 * deal.h - who computes which leaves of a step: contiguous runs, a node's run cut over its devices.
 *
 * Invariants
 *  1. Runs are in node order, then in device order, and cover all leaves. Dealing decides times and never bits.
 *  2. A node with a weight above 0 gets a leaf as long as there are as many leaves as such nodes; one with weight 0 (a
 *     server) gets none.
 *  3. Everything is a function of what all nodes know, so that they agree without asking: sizes, weights, and the
 *     seconds of steps that are complete everywhere.
 *
 * With fixed weights shares are proportional, by largest remainder. A dealer that follows speeds gives each leaf to the
 * node that would be done with it first, a node of D devices taking as long for one leaf as for D.
 */
#ifndef LS_EXCHANGE_DEAL_H
#define LS_EXCHANGE_DEAL_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_dealer {
	int nodes, workers;
	int follows;     /* speeds decide, once they are known */
	int *devices;    /* (nodes) 0: computes nothing */
	double *weight;  /* (nodes) relative shares; when following: leaves a second, as of the last change */
	double *speed;   /* (nodes) leaves a second, smoothed; 0: not known yet */
	int64_t *count;  /* (nodes) scratch */
	int64_t *other;  /* (nodes) scratch */
	int64_t steps;   /* learned from */
	int known;       /* weights are speeds by now */
	int64_t changes; /* how often the dealing changed */
} ls_dealer;

/* `devices` and `weight` (nodes) are copied. */
ls_status ls_dealer_init(ls_dealer *dealer, int nodes, const int *devices, const double *weight, int follows);
void ls_dealer_release(ls_dealer *dealer);

/* cut (nodes + 1): node i gets the leaves [cut[i], cut[i + 1]). */
void ls_dealer_deal(ls_dealer *dealer, int64_t leaves, int64_t *cut);

/* cut (devices + 1) of the run [first, last): even, and along whole pieces of the tree where that costs nothing. */
void ls_deal_devices(int64_t first, int64_t last, int devices, int64_t *cut);

/* A complete step: how many leaves each node had, and the seconds its devices computed, summed over leaves. */
void ls_dealer_learn(ls_dealer *dealer, const int64_t *cut, const double *seconds);

#endif
