/*
 * silu.c - sigmoid linear unit, also called swish.
 *
 *   y = x s, s = 1 / (1 + e^-x);  dx = dy s (1 + x (1 - s))
 *
 * s = (1 + tanh(x / 2)) / 2, so that it has the same bits everywhere.
 */
#include "kernels/simd.h"
#include "ops/shape.h"

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT;
}

/* to = sigmoid(x) */
static void sigmoid(const float *x, int64_t count, float *to)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = 0.5f * x[i];
	ls_simd_get()->tanh(to, count, to);
	for (int64_t i = 0; i < count; i++)
		to[i] = 0.5f + 0.5f * to[i];
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	sigmoid(op->x[0] + begin, count, op->y + begin);
	for (int64_t i = begin; i < begin + count; i++)
		op->y[i] *= op->x[0][i];
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	if (!op->dx[0])
		return;
	ls_pass_share(pass, op->out, member, &begin, &count);
	sigmoid(op->x[0] + begin, count, op->dx[0] + begin);
	for (int64_t i = begin; i < begin + count; i++) {
		float s = op->dx[0][i];
		op->dx[0][i] = op->dy[i] * s * (1 + op->x[0][i] * (1 - s));
	}
}

const ls_op_type ls_op_silu = {
	.name = "silu",
	.formula = "y = x / (1 + e^-x)",
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
