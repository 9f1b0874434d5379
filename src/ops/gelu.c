/*
 * gelu.c - Gaussian error linear unit.
 *
 *   y = x Phi(x), Phi the normal distribution; approximate: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 */
#include "kernels/simd.h"
#include "ops/shape.h"

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT;
}

static int is_approximate(const ls_op *op)
{
	return ((const ls_gelu_options *)op->node->attributes)->approximate;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_simd_get()->gelu(op->x[0] + begin, count, is_approximate(op), op->y + begin);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	if (op->dx[0])
		ls_simd_get()->gelu_backward(op->dy + begin, op->x[0] + begin, count, is_approximate(op),
					     op->dx[0] + begin);
}

const ls_op_type ls_op_gelu = {
	.name = "gelu",
	.formula = "y = x Phi(x), or its tanh form",
	.inputs = "x",
	.attributes = "approximate",
	.input_count = 1,
	.attribute_bytes = sizeof(ls_gelu_options),
	.shape = ls_shape_same,
	.keeps = keeps,
	.forward = forward,
	.backward = backward,
	.cases = { { .domain = LS_TOKENS,
		     .channels = 20,
		     .height = 7,
		     .width = 1,
		     .attributes = &(ls_gelu_options){ 0 } },
		   { .channels = 20, .height = 4, .width = 3, .attributes = &(ls_gelu_options){ .approximate = 1 } } },
};
