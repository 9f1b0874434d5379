/*
 * first_token.c - the first row of each sample: its first token, or the first position of an image.
 */
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	LS_TRY(ls_check_sample_rows(s));
	s->out = ls_tensor_make(s->in[0]->channels, 1, 1, LS_SAMPLES);
	return LS_OK;
}

/* Of images, the first position of sample i is row i. */
static const int32_t *first_rows(const ls_op *op, const ls_pass *pass)
{
	return op->in[0]->domain == LS_TOKENS ? pass->start : NULL;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_gather_rows(op, pass, first_rows(op, pass), member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_scatter_rows(op, pass, first_rows(op, pass), member);
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
	.cases = { { .domain = LS_TOKENS, .channels = 20, .height = 7, .width = 1 },
		   { .channels = 20, .height = 3, .width = 4 } },
};
