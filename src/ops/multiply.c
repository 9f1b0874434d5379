/*
 * multiply.c - the product of two values, element by element.
 *
 *   y = a b;  da = dy b;  db = dy a        a, b, y alike, (rows, C)
 */
#include "ops/shape.h"

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT | LS_KEEP_OTHERS;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	for (int64_t i = begin; i < begin + count; i++)
		op->y[i] = op->x[0][i] * op->x[1][i];
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	for (int k = 1; k >= 0; k--) {
		const float *other = op->x[1 - k];
		float *dx = op->dx[k];
		for (int64_t i = begin; dx && i < begin + count; i++)
			dx[i] = op->add_dx[k] ? dx[i] + op->dy[i] * other[i] : op->dy[i] * other[i];
	}
}

const ls_op_type ls_op_multiply = {
	.name = "multiply",
	.formula = "y = a b, element by element",
	LS_INPUTS(2, "a, b"),
	.adds = 3,
	.shape = ls_shape_same,
	.keeps = keeps,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 4, 3), LS_CASE_TOKENS(20, 7) },
};
