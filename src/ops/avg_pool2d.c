/*
 * avg_pool2d.c - average pooling, over windows or over the whole map.
 *
 *   y = sum over the window of x / (kernel_h kernel_w), padding counted as in PyTorch        x (C, H, W), y (C, H', W')
 *   dx = sum over the windows that have it of dy / (kernel_h kernel_w)
 */
#include "kernels/simd.h"
#include "ops/pool.h"

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	ls_pool_place at;
	while (ls_pool_next(op, &g, g.out_h, member, &at))
		ls_simd_get()->avg_pool(&g, op->x[0] + at.in, at.row, op->y + at.out);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = ls_pool_geometry_of(op, pass->n);
	ls_pool_place at;
	while (op->dx[0] && ls_pool_next(op, &g, g.in_h, member, &at))
		ls_simd_get()->avg_pool_backward(&g, op->dy + at.out, at.row, op->add_dx[0], op->dx[0] + at.in);
}

/* What the two have in common. */
#define AVERAGE LS_INPUTS(1, "x"), .adds = 1, .maps = 1, .forward = forward, .backward = backward

const ls_op_type ls_op_avg_pool2d = {
	.name = "avg_pool2d",
	.formula = "y = mean over a window of x, padding counted",
	LS_ATTRIBUTES(ls_pool_options, "kernel, stride, padding"),
	.shape = ls_pool_shape,
	AVERAGE,
	.cases = { LS_CASE_IMAGES(20, 6, 5,
				  .attributes = &(ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 }) },
};

const ls_op_type ls_op_global_avg_pool = {
	.name = "global_avg_pool",
	.formula = "y = mean over all positions of x",
	.shape = ls_pool_shape_global,
	AVERAGE,
	.cases = { LS_CASE_IMAGES(20, 6, 5) },
};
