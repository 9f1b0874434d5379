/*
 * sigmoid.c - the logistic function.
 *
 *   y = 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2;  dx = dy y (1 - y)
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
		op->y[i] = 0.5f * op->x[0][i];
	ls_simd_get()->tanh(op->y + begin, count, op->y + begin);
	for (int64_t i = begin; i < begin + count; i++)
		op->y[i] = 0.5f + 0.5f * op->y[i];
	ls_zero_padding(op->out, ls_pass_rows(pass, op->out), op->y, begin, count);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	for (int64_t i = begin; op->dx[0] && i < begin + count; i++)
		op->dx[0][i] = op->dy[i] * op->y[i] * (1 - op->y[i]);
}

const ls_op_type ls_op_sigmoid = {
	.name = "sigmoid",
	.formula = "y = 1 / (1 + e^-x)",
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
