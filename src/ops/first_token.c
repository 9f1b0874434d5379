/*
 * first_token.c - the first row of each sample: its first token, or the first position of an image.
 *
 *   y[i] = x[first row of sample i];  dx = dy in these rows, 0 in all others        x (rows, C), y (samples, C)
 */
#include "ops/shape.h"

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
	LS_INPUTS(1, "x"),
	.adds = 1,
	.shape = ls_shape_one_row,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7), LS_CASE_IMAGES(20, 3, 4) },
};
