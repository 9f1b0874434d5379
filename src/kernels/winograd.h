/*
 * winograd.h - Winograd's F(2x2, 3x3): a 3x3 convolution of stride 1 with 16 products per 2x2 outputs instead of 36.
 *
 *     y = A^T [ (G g G^T) * (B^T d B) ] A        g (3, 3) a filter, d (4, 4) a patch of the input, y (2, 2) outputs
 *
 *     B^T = 1  0 -1  0      G =  1    0    0     A^T = 1  1  1  0
 *           0  1  1  0          1/2  1/2  1/2          0  1 -1 -1
 *           0 -1  1  0          1/2 -1/2  1/2
 *           0  1  0 -1           0    0    1
 *
 * U = G g G^T, V = B^T d B and * element by element; over channels * becomes 16 products of matrices, (rows, in_panel)
 * by (in_panel, out_panel), a row being one patch of one sample. Backward is the transposed map of each part: for the
 * input it is the same walk with filters turned by 180 degrees, which swaps rows and columns 0 and 3 of U; for the
 * weights
 *     dg = G^T [ sum over patches and samples of V^T (A dy A^T) ] G.
 *
 * Walks go over *groups*: a run of patches in a row of patches, or one patch and a block of samples, 64 rows at most.
 * Of a group the four columns of the 4x4 are done one after the other, so that V and the products of one column stay in
 * the second-level cache for any number of channels. At the lower and right edge of odd maps a patch has one row or
 * column of outputs; row and column 3 only serve the other one and are left out.
 *
 * Invariants
 *  1. Element (i, j) of a patch is one chain over channels, as in conv.h; the 16 are combined in the order that
 *     kernels/simd/winograd.c writes, columns 0 to 3. Nothing depends on groups, threads or other samples.
 *  2. An element of dU is one chain over patches in row-major order, samples in order.
 *  3. Whether a layer is computed like this depends on its shape alone: ls_winograd_is_chosen().
 */
#ifndef LS_KERNELS_WINOGRAD_H
#define LS_KERNELS_WINOGRAD_H

#include "kernels/conv.h"

/* Patches of one direction of the walk. */
typedef struct ls_winograd_walk {
	int h, w, source_h, source_w; /* maps */
	int padding;
	int blocks, panel, source_blocks, source_panel;
	int patches_h, patches_w;
	int run;                /* patches a group covers at most */
	int64_t block;          /* samples a group covers at most (run == 1), else all */
	int64_t groups;         /* in all */
	ls_gemm (*products)[2]; /* by [patches - 1] or [0: whole block, 1: the rest]; then by accumulate */
} ls_winograd_walk;

struct ls_winograd_plan {
	ls_winograd_walk forward, backward;
	ls_gemm (*wgrad)[2]; /* as `products` */
};

/* A plan for what `conv` describes, whose forward tiles it replaces by its own. */
ls_status ls_winograd_plan_make(ls_conv_plan *conv, ls_arena *arena);

/* Floats of scratch for all of the following, on a team of `threads`: transformed weights, then room per thread. */
size_t ls_winograd_scratch_floats(const ls_conv_geometry *geometry, int threads);

/* As their counterparts in conv.h; all of them synchronise inside. */
void ls_winograd_forward(const ls_conv_plan *plan, const float *x, const float *weights,
			 const ls_conv_epilogue *epilogue, float *scratch, float *y, ls_member member);
void ls_winograd_backward_data(const ls_conv_plan *plan, const float *dy, const float *weights, float *scratch,
			       int accumulate, float *dx, ls_member member);
void ls_winograd_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, float *scratch,
				  int accumulate, float *dweights, ls_member member);

#endif
