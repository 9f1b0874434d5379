/*
 * tanh.c - hyperbolic tangent.
 *
 *   y = tanh x;  dx = dy (1 - y^2)
 */
#include "kernels/simd.h"
#include "ops/shape.h"

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_OUTPUT;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_simd_get()->tanh(op->x[0] + begin, count, op->y + begin);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	if (op->dx[0])
		ls_simd_get()->tanh_backward(op->dy + begin, op->y + begin, count, op->dx[0] + begin);
}

const ls_op_type ls_op_tanh = {
	.name = "tanh",
	.formula = "y = tanh(x)",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.shape = ls_shape_same,
	.keeps = keeps,
	.forward = forward,
	.backward = backward,
	.cases = { { .domain = LS_TOKENS, .channels = 20, .height = 7, .width = 1 },
		   { .channels = 20, .height = 4, .width = 3 } },
};
