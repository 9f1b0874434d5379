/*
 * add.c - the sum of two values, with the relu that follows it.
 *
 *   y = relu?(a + b);  da = db = dy (where y > 0)        a, b, y alike, (rows, C)
 */
#include "kernels/simd.h"
#include "ops/shape.h"

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_simd_get()->add(op->x[0] + begin, op->x[1] + begin, count, op->node->activation == LS_ACT_RELU,
			   op->y + begin);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	if (op->node->activation)
		ls_simd_get()->relu_backward(op->dy + begin, op->y + begin, count, op->dy + begin);
	for (int k = 1; k >= 0; k--)
		ls_give(op->dx[k] ? op->dx[k] + begin : NULL, op->add_dx[k], op->dy + begin, count);
}

const ls_op_type ls_op_add = {
	.name = "add",
	.formula = "y = a + b",
	LS_INPUTS(2, "a, b"),
	.fuses = LS_FUSES_RELU,
	.adds = 3,
	.shape = ls_shape_same,
	.keeps = ls_keeps_activated,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 4, 3), LS_CASE_TOKENS(20, 7) },
};
