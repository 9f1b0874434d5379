/*
 * flatten.c - maps to one row per sample, in PyTorch's order.
 *
 *   y[c H W + p] = x[c, p];  dx[c, p] = dy[c H W + p]        x (C, H, W), y (C H W, 1, 1), p a position
 */
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	const ls_tensor *in = s->in[0];
	s->is_identity = in->height * in->width == 1;
	s->out = ls_tensor_make(in->channels * in->height * in->width, 1, 1, LS_SAMPLES);
	return LS_OK;
}

/* Float of channel c at position p of sample i in panels. */
static int64_t place(const ls_tensor *t, int64_t n, int64_t c, int64_t p, int64_t i)
{
	return ((c / t->panel * t->height * t->width + p) * n + i) * t->panel + c % t->panel;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in[0], *out = op->out;
	int64_t positions = (int64_t)in->height * in->width, padded = (int64_t)out->blocks * out->panel, begin, end;

	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t f = 0; f < padded; f++)
			op->y[place(out, pass->n, f, 0, i)] =
				f < out->channels ? op->x[0][place(in, pass->n, f / positions, f % positions, i)] : 0;
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in[0], *out = op->out;
	int64_t positions = (int64_t)in->height * in->width, padded = (int64_t)in->blocks * in->panel, begin, end;

	if (!op->dx[0])
		return;
	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t c = 0; c < padded; c++)
			for (int64_t p = 0; p < positions; p++)
				op->dx[0][place(in, pass->n, c, p, i)] =
					c < in->channels ? op->dy[place(out, pass->n, c * positions + p, 0, i)] : 0;
}

const ls_op_type ls_op_flatten = {
	.name = "flatten",
	.formula = "(C, H, W) -> (C H W, 1, 1)",
	LS_INPUTS(1, "x"),
	.maps = 1,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 4, 3) },
};
