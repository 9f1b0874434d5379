/*
 * pack.c - images as the loader has them, into panels.
 *
 *   y[c / panel][p][i][c % panel] = x[i, c, p]        x (n, C, H, W), y [blocks][H][W][n][panel], p a position
 *
 * The graph adds it where a layer other than a gathering convolution reads the input; images have no gradient.
 */
#include "ops/shape.h"

static int takes_input(const ls_tensor *in)
{
	return in->domain == LS_SAMPLES;
}

static ls_status shape(ls_shape *s)
{
	LS_TRY(ls_shape_same(s));
	s->out.is_constant = 1;
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *t = op->out;
	int64_t positions = (int64_t)t->height * t->width, padded = (int64_t)t->blocks * t->panel, begin, end;

	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t c = 0; c < padded; c++)
			for (int64_t p = 0; p < positions; p++) {
				int64_t row = (c / t->panel * positions + p) * pass->n + i;
				op->y[row * t->panel + c % t->panel] =
					c < t->channels ? pass->images[(i * t->channels + c) * positions + p] : 0;
			}
}

const ls_op_type ls_op_pack = {
	.name = "pack",
	.formula = "y = x, in panels",
	LS_INPUTS(1, "images"),
	.takes_input = takes_input,
	.shape = shape,
	.forward = forward,
	.cases = { LS_CASE_IMAGES(3, 5, 4, .raw = 1) },
};
