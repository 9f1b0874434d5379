/*
 * winograd_walk.h - what the walks of winograd.c and the sums of winograd_wgrad.c share.
 */
#ifndef LS_KERNELS_WINOGRAD_WALK_H
#define LS_KERNELS_WINOGRAD_WALK_H

#include "kernels/conv_walk.h"
#include "kernels/simd.h"
#include "kernels/winograd.h"

/* Rows of a product at most: a column of V for 256 channels is 256 KiB. */
#define LS_WINOGRAD_ROWS 64

/* Patches [x0, x1) of row y of patches, samples [first, first + count). */
typedef struct ls_winograd_group {
	int y, x0, x1;
	int64_t first, count;
} ls_winograd_group;

static inline ls_winograd_group ls_winograd_group_at(const ls_winograd_walk *w, int64_t n, int64_t index)
{
	int64_t blocks = (n + w->block - 1) / w->block, runs = (w->patches_w + w->run - 1) / w->run;
	int64_t run = index / blocks % runs;
	ls_winograd_group g = { .y = (int)(index / blocks / runs),
				.x0 = (int)run * w->run,
				.first = index % blocks * w->block };

	g.x1 = ls_min_int(g.x0 + w->run, w->patches_w);
	g.count = n - g.first < w->block ? n - g.first : w->block;
	return g;
}

/* Patches of a group that column j counts for: column 3 serves the second output of a patch only. */
static inline int ls_winograd_patches(const ls_winograd_walk *w, const ls_winograd_group *g, int j)
{
	return g->x1 - g->x0 - (j == 3 && 2 * g->x1 > w->w);
}

/* Where element (i, j) of U for a pair of blocks lies. */
static inline int64_t ls_winograd_block(const ls_winograd_walk *w, int64_t i, int64_t j, int64_t block, int64_t source)
{
	return (((j * w->blocks + block) * 4 + i) * w->source_blocks + source) * w->panel * w->source_panel;
}

/* This thread's part of the scratch. */
float *ls_winograd_thread_scratch(const ls_conv_plan *plan, float *scratch, ls_member member);

/* Column j of V for the first `patches` of a group, in one block of `source`: v (4, patches, count, source_panel), the
 * four `plane` floats apart. */
void ls_winograd_input_column(const ls_winograd_walk *w, int64_t n, const ls_winograd_group *g, int j, int patches,
			      const float *source, int64_t block, float *v, int64_t plane);

/* What stands for positions outside the map. */
extern const float ls_winograd_zeros[];

#endif
