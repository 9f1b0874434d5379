/*
 * linear_parts.h - what linear layers in fp32 and in bf16 share.
 */
#ifndef LS_KERNELS_LINEAR_PARTS_H
#define LS_KERNELS_LINEAR_PARTS_H

#include "kernels/linear.h"

/* Outputs of a block: fewer in the last one of tied weights. */
int ls_linear_outputs_of(const ls_linear_plan *plan, int64_t ob);

/* Where block (ob, ib) of the weights begins. */
int64_t ls_linear_block_place(const ls_linear_plan *plan, int64_t ob, int64_t ib);

/* What is fused into the layer, on `count` rows of out block ob. */
void ls_linear_finish(const ls_linear_plan *plan, const ls_linear_epilogue *e, int64_t ob, int64_t count, float *tile,
		      float *y);

/* The gradient of the weights where there are no rows. */
void ls_linear_zero_weights(const ls_linear_plan *plan, int accumulate, float *dweights, ls_member member);

#endif
