/*
 * linear_bf16.h - a linear layer and its gradients with operands in bf16 and sums in fp32 (kernels/simd/bf16.h).
 *
 * Values and weights lie as in linear.h, in fp32. Operands are rounded where a layer begins: rows into scratch by the
 * whole team, a block of weights where it is used. An element is one chain over pairs of channels, or of rows for
 * weight gradients, in order; an odd last one is paired with a zero. Steps of bf16-amx are of the channels of a block,
 * or of the rows of a chunk. So nothing depends on how the work is cut.
 */
#ifndef LS_KERNELS_LINEAR_BF16_H
#define LS_KERNELS_LINEAR_BF16_H

#include "kernels/linear.h"
#include "kernels/simd.h"

/* Floats of scratch for up to `rows` rows. */
size_t ls_linear_bf16_scratch_floats(int in_blocks, int in_panel, int out_blocks, int out_panel, int64_t rows,
				     int threads);

/* As those of linear.h, with the kernels of bf16 or of bf16-amx; backward makes both gradients, for dy is
 * rounded once. They synchronise the team inside; call them with `scratch` free.
 * x may be NULL where the scratch still has what the call before made of the same x: in the same direction, for a layer
 * with as many rows and inputs, tied or not as this one, and backward with the gradient of its weights. */
void ls_linear_bf16_forward(const ls_bf16_kernels *kernels, const ls_linear_plan *plan, int64_t rows, const float *x,
			    const float *weights, const ls_linear_epilogue *epilogue, float *y, float *scratch,
			    ls_member member);

enum { LS_LINEAR_BF16_ROWS = 512 }; /* rows of a chunk of dy */

/* What backward reads and makes. */
typedef struct ls_linear_bf16_gradient {
	const float *x, *dy, *weights;
	/* Optional: rows [first, first + count) of a block of dy, a chunk or the last rows, are about to be rounded.
	 * They may still be changed; it is called once per chunk, also where neither gradient is wanted. */
	void (*ready)(const void *context, int64_t block, int64_t first, int64_t count);
	const void *context;
	float *dweights, *dx; /* NULL: not wanted */
	int add_dweights, add_dx;
} ls_linear_bf16_gradient;

void ls_linear_bf16_backward(const ls_bf16_kernels *kernels, const ls_linear_plan *plan, int64_t rows,
			     const ls_linear_bf16_gradient *gradient, float *scratch, ls_member member);

#endif
