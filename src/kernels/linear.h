/*
 * linear.h - a linear layer over any number of rows: y = x . w, and its two gradients.
 *
 * x is (in blocks, rows, in_panel), y is (out blocks, rows, out_panel). Rows are tokens, whose number differs between
 * micro-batches, so products exist for powers of two: rows are cut into tiles of LS_LINEAR_TILE, and what is left over
 * into its binary digits. An element is one sum in index order whatever the cut, so nothing depends on it, and no row
 * is computed that is not there.
 *
 * Weights are either blocked (out block, in block, in_panel, out_panel), as everywhere; or rows: (out, in_blocks *
 * in_panel), as an embedding stores them, which a layer can share ("tied"): then a block is transposed on the fly in
 * forward instead of in backward.
 */
#ifndef LS_KERNELS_LINEAR_H
#define LS_KERNELS_LINEAR_H

#include <stddef.h>

#include "base/team.h"
#include "kernels/gemm.h"

enum { LS_LINEAR_LEVELS = 9, LS_LINEAR_TILE = 256 }; /* tiles of 2^0 .. 2^8 rows */

/* Products by the logarithm of their rows; then whether they add. */
typedef ls_gemm ls_linear_products[LS_LINEAR_LEVELS][2];

typedef struct ls_linear_plan {
	int in_blocks, in_panel, out_blocks, out_panel;
	int tied;     /* weights are rows */
	int last_out; /* outputs of the last block: a tied one may have fewer than out_panel */
	ls_linear_products forward, backward, last_backward; /* `last`: of the last out block, tied */
	ls_linear_products weights, last_weights;
} ls_linear_plan;

ls_status ls_linear_plan_make(ls_linear_plan *out, int in, int in_panel, int out_features, int out_panel, int tied);

/* Work fused into the layer, done on a finished tile of y. */
typedef struct ls_linear_epilogue {
	const float *bias; /* (out_blocks * out_panel) or NULL */
	int relu;
	/* `kept` (y's shape; NULL: no gelu): gelu's input, or with `keep_slope` its derivative there, all that backward
	 * needs. y gets gelu(.). */
	float *kept;
	int approximate; /* its tanh form */
	int keep_slope;
} ls_linear_epilogue;

/* Called by every thread of a team; they share the work and do not synchronise at the end. `scratch` has
 * ls_linear_scratch_floats(). */
size_t ls_linear_scratch_floats(int in_panel, int out_panel, int threads);
void ls_linear_forward(const ls_linear_plan *plan, int64_t rows, const float *x, const float *weights,
		       const ls_linear_epilogue *epilogue, float *y, float *scratch, ls_member member);
void ls_linear_backward_data(const ls_linear_plan *plan, int64_t rows, const float *dy, const float *weights,
			     int accumulate, float *dx, float *scratch, ls_member member);
void ls_linear_backward_weights(const ls_linear_plan *plan, int64_t rows, const float *x, const float *dy,
				int accumulate, float *dweights, ls_member member);

#endif
