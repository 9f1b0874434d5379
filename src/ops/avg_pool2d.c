/*
 * avg_pool2d.c - average pooling, over windows or over the whole map.
 *
 *   y = sum over the window of x / (kernel_h kernel_w); padding counts, as in PyTorch
 */
#include "kernels/simd.h"
#include "ops/pool.h"

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	while ((unit = ls_team_next(member, (int64_t)op->out->blocks * g.out_h)) >= 0) {
		int64_t block = unit / g.out_h;
		ls_simd_get()->avg_pool(&g, op->x[0] + block * in_plane, (int)(unit % g.out_h),
					op->y + block * out_plane);
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	while (op->dx[0] && (unit = ls_team_next(member, (int64_t)op->out->blocks * g.in_h)) >= 0) {
		int64_t block = unit / g.in_h;
		ls_simd_get()->avg_pool_backward(&g, op->dy + block * out_plane, (int)(unit % g.in_h), op->add_dx[0],
						 op->dx[0] + block * in_plane);
	}
}

const ls_op_type ls_op_avg_pool2d = {
	.name = "avg_pool2d",
	.formula = "y = mean over a window of x, padding counted",
	.inputs = "x",
	.attributes = "kernel, stride, padding",
	.input_count = 1,
	.attribute_bytes = sizeof(ls_pool_options),
	.adds = 1,
	.maps = 1,
	.shape = ls_pool_shape,
	.forward = forward,
	.backward = backward,
	.cases = { { .channels = 20,
		     .height = 6,
		     .width = 5,
		     .attributes = &(ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 } } },
};

const ls_op_type ls_op_global_avg_pool = {
	.name = "global_avg_pool",
	.formula = "y = mean over all positions of x",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.adds = 1,
	.maps = 1,
	.shape = ls_pool_shape_global,
	.forward = forward,
	.backward = backward,
	.cases = { { .channels = 20, .height = 6, .width = 5 } },
};
