/*
 * masked_positions.c - the rows of the tokens that are to be predicted.
 *
 *   y[i] = x[masked_at[i]];  dx = dy in these rows, 0 in all others        x (tokens, C), y (masked positions, C)
 */
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	if (s->masked_max == 0)
		return ls_fail(LS_EINVALID, "masked_positions: the input has no tokens to be predicted");
	if (s->in[0]->domain != LS_TOKENS)
		return ls_fail(LS_EINVALID, "masked_positions needs one row per token");
	s->out = ls_tensor_make(s->in[0]->channels, s->masked_max, 1, LS_MASKED);
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_gather_rows(op, pass, pass->masked_at, member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_scatter_rows(op, pass, pass->masked_at, member);
}

const ls_op_type ls_op_masked_positions = {
	.name = "masked_positions",
	.formula = "the rows of x that are to be predicted",
	LS_INPUTS(1, "x"),
	.adds = 1,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7) },
};
