/*
 * max_pool2d.c - max pooling; it may carry the bias and relu of the convolution before it.
 *
 *   y = relu?(max over the window of x + b);  the gradient goes to the first maximum
 *
 * aux: a byte per output, which element of the window won. scratch: bias partials.
 */
#include "kernels/simd.h"
#include "ops/pool.h"

static int keeps(const ls_node *node)
{
	return node->activation ? LS_KEEP_OUTPUT : 0;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return (size_t)(ls_tensor_floats(op->out) * n);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return op->params[LS_BIAS] ? sizeof(float) * ls_bias_grad_floats(op->out, ls_tensor_rows(op->out, n)) : 0;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_simd *simd = ls_simd_get();
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	const float *bias = ls_op_param(op, pass, LS_BIAS);
	int relu = op->node->activation == LS_ACT_RELU;
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel, row = (int64_t)g.out_w * g.n * g.panel, unit;

	while ((unit = ls_team_next(member, (int64_t)op->out->blocks * g.out_h)) >= 0) {
		int64_t block = unit / g.out_h;
		int oy = (int)(unit % g.out_h);
		float *y = op->y + block * g.out_h * row;
		simd->max_pool(&g, op->x[0] + block * in_plane, oy, y, (uint8_t *)op->aux + block * g.out_h * row);
		if (bias || relu)
			simd->bias_act(y + oy * row, g.out_w * g.n, g.panel, bias ? bias + block * g.panel : NULL,
				       relu);
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	if (op->node->activation)
		ls_mask_dy(op, pass, member);
	if (op->params[LS_BIAS])
		ls_bias_grad(op, pass, op->scratch, member);
	while (op->dx[0] && (unit = ls_team_next(member, (int64_t)op->out->blocks * g.in_h)) >= 0) {
		int64_t block = unit / g.in_h;
		ls_simd_get()->max_pool_backward(&g, op->dy + block * out_plane, (uint8_t *)op->aux + block * out_plane,
						 (int)(unit % g.in_h), op->add_dx[0], op->dx[0] + block * in_plane);
	}
}

const ls_op_type ls_op_max_pool2d = {
	.name = "max_pool2d",
	.formula = "y = maximum over a window of x",
	.inputs = "x",
	.attributes = "kernel, stride, padding",
	.input_count = 1,
	.attribute_bytes = sizeof(ls_pool_options),
	.fuses = LS_FUSES_BIAS,
	.adds = 1,
	.maps = 1,
	.shape = ls_pool_shape,
	.keeps = keeps,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.forward = forward,
	.backward = backward,
	.cases = { { .channels = 20, .height = 6, .width = 5, .attributes = &(ls_pool_options){ .kernel = 2 } },
		   { .channels = 20,
		     .height = 6,
		     .width = 5,
		     .attributes = &(ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 } } },
};
