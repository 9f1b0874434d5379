/*
 * conv.h - convolution on panels: forward, backward-data, backward-weights.
 *
 * Activations are [blocks][H][W][N][panel]. For an output position and a filter tap that falls inside the image the
 * contribution is one small product (N, in_panel) . (in_panel, out_panel): no im2col, no work for taps that only see
 * padding. With stride 1 a whole run of positions in a row reads a contiguous run of input rows, so small micro-batches
 * still make long products. A linear layer is the convolution whose kernel covers its whole input.
 *
 * A layer with few input channels (the first one) is *gathered*: its patches are laid out once as rows of
 * depth = channels * taps floats, and the layer is then a 1x1 convolution over them.
 *
 * Backward-data is the same walk with the position maps of the transposed convolution and transposed weights.
 *
 * Sums: an output element adds taps in tap order, blocks in block order, and inside a product the index order. A weight
 * gradient adds output positions in row-major order, samples in order. Neither depends on the number of threads.
 */
#ifndef LS_KERNELS_CONV_H
#define LS_KERNELS_CONV_H

#include <stdint.h>

#include "base/memory.h"
#include "base/team.h"
#include "kernels/gemm.h"
#include "params/params.h"

typedef struct ls_conv_geometry {
	int in_c, out_c;
	int in_h, in_w, out_h, out_w;
	int kernel_h, kernel_w, stride, padding;
	int gathered;
} ls_conv_geometry;

/* How a layer is computed; the sums differ, and with them the bits. */
typedef enum ls_conv_algorithm {
	LS_CONV_AUTO,    /* Winograd's, for shapes where that is faster */
	LS_CONV_DIRECT,  /* tap by tap */
	LS_CONV_WINOGRAD /* Winograd's, for every shape it can compute */
} ls_conv_algorithm;

/* Whether a layer is computed by Winograd's algorithm (winograd.h): by its shape, never by the machine or
 * micro-batch. */
int ls_conv_is_winograd(const ls_conv_geometry *geometry, ls_conv_algorithm algorithm);

/* Reachable taps, which fall inside the image at some position, first: slot[tap] in order of tap among them, then among
 * the unreachable. Returns the number of reachable ones. */
int ls_conv_slots(const ls_conv_geometry *geometry, int16_t *slot);

/* Multiply-adds of one forward pass per sample, taps inside the image only, or padding counted. */
double ls_conv_macs(const ls_conv_geometry *geometry, int count_padding);

/* Floats of a row of gathered patches: depth rounded up to whole cache lines. */
int ls_conv_patch_floats(const ls_conv_geometry *geometry);

/* One direction of the walk: destination positions, and for each tap the source position (-1: outside). */
typedef struct ls_conv_walk {
	int h, w, source_h, source_w;
	int blocks, panel;               /* of the destination */
	int source_blocks, source_panel; /* source_panel: depth of a product */
	int source_stride;               /* floats between source rows */
	int kernel_h, kernel_w;
	const int32_t *map_y, *map_x; /* (h, kernel_h), (w, kernel_w) */
	int run;                      /* positions a tile covers at most */
	int64_t block;                /* samples a tile covers at most (run == 1), else all */
	ls_gemm (*products)[2];       /* by [positions - 1] or [0: whole block, 1: the rest]; then by accumulate */
	int64_t tiles;                /* per destination block */
} ls_conv_walk;

/* Everything a convolution needs for micro-batches of n samples. Lives in the arena it was made in. */
typedef struct ls_conv_plan {
	ls_conv_geometry geometry; /* as run: 1x1 stride 1 is flattened, gathered is 1x1 over patches */
	int64_t n;
	const int16_t *slot; /* tap -> slot of the weight store */
	int reachable_taps, kernel_taps;
	ls_conv_walk forward, backward;
	int64_t wgrad_block;
	int wgrad_run;
	int wgrad_parts, wgrad_depth; /* a block's rows are cut into parts of wgrad_depth, the last one shorter */
	ls_gemm (*wgrad[2])[2]; /* [whole part, last part] by [positions - 1] or [whole block, rest]; accumulate */
	const struct ls_winograd_plan *winograd; /* NULL: computed directly */
} ls_conv_plan;

/* `threads` only decides how finely weight gradients are cut, never what they are. */
ls_status ls_conv_plan_make(ls_conv_plan *out, ls_arena *arena, const ls_conv_geometry *geometry,
			    ls_conv_algorithm algorithm, int64_t n, const ls_weight_layout *weights, int threads);

/* Work fused into the walk, done on a finished tile while it is in cache. */
typedef struct ls_conv_epilogue {
	const float *bias; /* (blocks * panel) or NULL */
	int relu;
	float *mean, *m2; /* (blocks, tiles, panel) moments of each tile, or NULL */
} ls_conv_epilogue;

/* All of the following are called by every thread of a team; they share the work and do not synchronise at the end. */

/* images (n, C, H, W) -> patches (out_h, out_w, n, patch_floats). `geometry` is the layer's own. */
void ls_conv_gather(const ls_conv_geometry *geometry, int64_t n, const float *images, float *patches, ls_member member);

void ls_conv_forward(const ls_conv_plan *plan, const float *x, const float *weights, const ls_conv_epilogue *epilogue,
		     float *y, ls_member member);

/* dx from dy; adds to dx when `accumulate`. `scratch` is as large as the reachable weights: room to transpose their
 * blocks. Synchronises inside. */
void ls_conv_backward_data(const ls_conv_plan *plan, const float *dy, const float *weights, float *scratch,
			   int accumulate, float *dx, ls_member member);

void ls_conv_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, int accumulate,
			      float *dweights, ls_member member);

/* Tiles a destination block of the forward walk has at most, in any plan for micro-batches of up to n samples: known
 * before a plan is made, so that memory for moments can be. */
int64_t ls_conv_tiles_most(const ls_conv_geometry *geometry, ls_conv_algorithm algorithm, int64_t n);

/* Rows of tile t of a destination block: the count behind its moments. */
int64_t ls_conv_tile_rows(const ls_conv_plan *plan, int64_t tile);

#endif
