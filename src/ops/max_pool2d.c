/*
 * max_pool2d.c - max pooling; it may carry the bias and relu of the convolution before it.
 *
 *   y = relu?(max over the window of x + b)        x (C, H, W), y (C, H', W'), b (C)
 *   dx = sum of dy (where y > 0) over the windows whose first maximum it is
 *
 * aux: a byte per output, which element of the window won. scratch: bias partials.
 */
#include "kernels/simd.h"
#include "ops/pool.h"

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return (size_t)(ls_tensor_floats(op->out) * n);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * ls_bias_grad_floats(op, n);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_simd *simd = ls_simd_get();
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	const float *bias = ls_op_param(op, pass, LS_BIAS);
	int relu = op->node->activation == LS_ACT_RELU;
	int64_t row = g.out_w * g.n;
	ls_pool_place at;

	while (ls_pool_next(op, &g, g.out_h, member, &at)) {
		simd->max_pool(&g, op->x[0] + at.in, at.row, op->y + at.out, (uint8_t *)op->aux + at.out);
		if (bias || relu)
			simd->bias_act(op->y + at.out + at.row * row * g.panel, row, g.panel,
				       bias ? bias + at.block * g.panel : NULL, relu);
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	ls_pool_place at;

	if (op->node->activation)
		ls_mask_dy(op, pass, member);
	if (ls_op_grad(op, pass, LS_BIAS))
		ls_bias_grad(op, pass, op->scratch, member);
	while (op->dx[0] && ls_pool_next(op, &g, g.in_h, member, &at))
		ls_simd_get()->max_pool_backward(&g, op->dy + at.out, (uint8_t *)op->aux + at.out, at.row,
						 op->add_dx[0], op->dx[0] + at.in);
}

const ls_op_type ls_op_max_pool2d = {
	.name = "max_pool2d",
	.formula = "y = maximum over a window of x",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_pool_options, "kernel, stride, padding"),
	.fuses = LS_FUSES_BIAS,
	.adds = 1,
	.maps = 1,
	.shape = ls_pool_shape,
	.keeps = ls_keeps_activated,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 6, 5, .attributes = &(ls_pool_options){ .kernel = 2 }),
		   LS_CASE_IMAGES(20, 6, 5,
				  .attributes = &(ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 }) },
};
