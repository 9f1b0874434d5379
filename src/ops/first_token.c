/*
 * first_token.c - the first row of each sample.
 */
#include <string.h>

#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	if (s->in[0]->domain != LS_TOKENS)
		return ls_fail(LS_EINVALID, "first_token needs one row per token");
	s->out = ls_tensor_make(s->in[0]->channels, 1, 1, LS_SAMPLES);
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_gather_rows(op, pass, pass->start, member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_scatter_rows(op, pass, pass->start, member);
}

const ls_op_type ls_op_first_token = {
	.name = "first_token",
	.formula = "the first row of each sample",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.adds = 1,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { { LS_TOKENS, 20, 7, 1 } },
};
