/*
 * conv_walk.h - what the walks of conv.c and the sums of conv_wgrad.c share.
 */
#ifndef LS_KERNELS_CONV_WALK_H
#define LS_KERNELS_CONV_WALK_H

#include "kernels/conv.h"

static inline int ls_min_int(int a, int b)
{
	return a < b ? a : b;
}

static inline int ls_conv_slot_of(const ls_conv_plan *plan, int tap)
{
	return plan->slot ? plan->slot[tap] : tap;
}

/* A tile: positions [x0, x1) of row y, samples [first, first + count). */
typedef struct ls_conv_tile {
	int y, x0, x1;
	int64_t first, count;
} ls_conv_tile;

/* Tile `index` of a destination block. */
ls_conv_tile ls_conv_tile_at(const ls_conv_walk *walk, int64_t n, int64_t index);

/* Bias, relu and moments of tile `index` of an output block, whose rows are at `out`. */
void ls_conv_finish_tile(const ls_conv_plan *plan, const ls_conv_epilogue *epilogue, int64_t block, int64_t index,
			 int64_t rows, float *out);

/* Weight gradients: how their work is cut, and a unit of it. Enough units to keep every thread busy to the end, but no
 * more than needed: the taps of a group share their operands. */
enum { LS_CONV_TAPS_TOGETHER = 64 };
typedef struct ls_conv_wgrad_cut {
	int group; /* taps of a unit */
	int64_t groups, parts, units;
} ls_conv_wgrad_cut;
typedef struct ls_conv_wgrad_unit {
	int64_t block, source; /* out block, in block */
	int first, last;       /* taps */
	int part;              /* of the block's rows */
} ls_conv_wgrad_unit;
ls_conv_wgrad_cut ls_conv_wgrad_cut_make(const ls_conv_plan *plan, int threads);
ls_conv_wgrad_unit ls_conv_wgrad_unit_at(const ls_conv_plan *plan, const ls_conv_wgrad_cut *cut, int64_t unit);

/* The product for `positions` neighbours, or for a whole or partial block of samples. */
static inline const ls_gemm *ls_conv_product(ls_gemm (*products)[2], int run, int64_t block, int positions,
					     int64_t count, int accumulate)
{
	int index = run > 1 ? positions - 1 : count < block;
	return &products[index][accumulate];
}

/* Positions of the tile that tap column `k` reaches, as [*a, *b); contiguous in the source because stride is 1 or run
 * is 1. */
static inline int ls_conv_reach(const ls_conv_walk *w, const ls_conv_tile *t, int k, int *a, int *b)
{
	int from = t->x0, to = t->x1;
	while (from < to && w->map_x[from * w->kernel_w + k] < 0)
		from++;
	while (to > from && w->map_x[(to - 1) * w->kernel_w + k] < 0)
		to--;
	*a = from;
	*b = to;
	return from < to;
}

#endif
