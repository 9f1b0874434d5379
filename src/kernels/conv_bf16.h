/*
 * conv_bf16.h - the convolution of conv.h with products in bf16.
 *
 * Operands are rounded to bf16 once per call, into scratch, and multiplied in pairs along the inner dimension by the
 * kernels of simd.h, those of bf16 or of bf16-amx, with sums in fp32 in the order of the fp32 convolution. Forward and
 * the gradient of the input pair neighbouring channels; the gradient of the weights pairs samples 0 and 1, 2 and 3, ...
 * of a position, an odd last one with zeros.
 *
 * All are called by every thread of a team; they share the work and synchronise inside, not at the end.
 */
#ifndef LS_KERNELS_CONV_BF16_H
#define LS_KERNELS_CONV_BF16_H

#include "kernels/conv.h"
#include "kernels/simd.h"

/* Scratch of all three for micro-batches of n samples; grows with n. */
size_t ls_conv_bf16_scratch_floats(const ls_conv_geometry *geometry, int64_t n, const ls_weight_layout *weights,
				   int threads);

void ls_conv_bf16_forward(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *x,
			  const float *weights, const ls_conv_epilogue *epilogue, float *y, float *scratch,
			  ls_member member);

/* dx from dy; adds to dx when `accumulate`. */
void ls_conv_bf16_backward_data(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *dy,
				const float *weights, int accumulate, float *dx, float *scratch, ls_member member);

void ls_conv_bf16_backward_weights(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *x,
				   const float *dy, int accumulate, float *dweights, float *scratch, ls_member member);

#endif
