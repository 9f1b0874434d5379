/*
 * concat.c - the channels of two values, one behind the other.
 *
 *   y = (a, b);  (da, db) = dy        a (rows, A), b (rows, B), y (rows, A + B)
 */
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	const ls_tensor *a = s->in[0], *b = s->in[1];
	if (a->domain != b->domain || a->height != b->height || a->width != b->width)
		return ls_fail(LS_EINVALID, "concat: %s of %dx%d and %s of %dx%d do not have the same rows",
			       ls_domain_name(a->domain), a->height, a->width, ls_domain_name(b->domain), b->height,
			       b->width);
	if (a->channels > LS_FLOATS_MOST - b->channels)
		return ls_fail(LS_EINVALID, "concat: %d and %d channels are too many", a->channels, b->channels);
	s->out = ls_tensor_like(a, a->channels + b->channels);
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *a = op->in[0], *b = op->in[1], *out = op->out;
	int64_t rows = ls_pass_rows(pass, out), begin, end;

	ls_team_range(member, rows, &begin, &end);
	for (int64_t r = begin; r < end; r++)
		for (int c = 0; c < out->blocks * out->panel; c++) {
			float *y = &op->y[ls_row_at(out, rows, r, c)];
			if (c < a->channels)
				*y = op->x[0][ls_row_at(a, rows, r, c)];
			else
				*y = c < out->channels ? op->x[1][ls_row_at(b, rows, r, c - a->channels)] : 0;
		}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out), begin, end;

	ls_team_range(member, rows, &begin, &end);
	for (int k = 0; k < 2; k++) {
		const ls_tensor *t = op->in[k];
		int first = k ? op->in[0]->channels : 0;
		for (int64_t r = begin; op->dx[k] && r < end; r++)
			for (int c = 0; c < t->blocks * t->panel; c++)
				op->dx[k][ls_row_at(t, rows, r, c)] =
					c < t->channels ? op->dy[ls_row_at(op->out, rows, r, first + c)] : 0;
	}
}

const ls_op_type ls_op_concat = {
	.name = "concat",
	.formula = "y = the channels of a, then those of b",
	LS_INPUTS(2, "a, b"),
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 4, 3), LS_CASE_TOKENS(70, 7) },
};
