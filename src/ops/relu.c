/*
 * relu.c - rectified linear unit.
 *
 *   y = max(0, x);  dx = dy where y > 0
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
	for (int64_t i = begin; i < begin + count; i++)
		op->y[i] = op->x[0][i] < 0 ? 0 : op->x[0][i]; /* NaN stays NaN */
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	if (op->dx[0])
		ls_simd_get()->relu_backward(op->dy + begin, op->y + begin, count, op->dx[0] + begin);
}

const ls_op_type ls_op_relu = {
	.name = "relu",
	.formula = "y = max(0, x)",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.shape = ls_shape_same,
	.keeps = keeps,
	.forward = forward,
	.backward = backward,
	.cases = { { .channels = 20, .height = 4, .width = 3 },
		   { .domain = LS_TOKENS, .channels = 20, .height = 7, .width = 1 } },
};
