/*
 * silu.c - sigmoid linear unit, also called swish.
 *
 *   y = x s, s = 1 / (1 + e^-x);  dx = dy s (1 + x (1 - s))
 */
#include "ops/pointwise.h"

static void value(const ls_span *s)
{
	ls_sigmoid_of(s->x, s->count, s->y);
	for (int64_t i = 0; i < s->count; i++)
		s->y[i] *= s->x[i];
}

static void slope(const ls_span *s)
{
	ls_sigmoid_of(s->x, s->count, s->dx);
	for (int64_t i = 0; i < s->count; i++) {
		float sigmoid = s->dx[i];
		s->dx[i] = s->dy[i] * sigmoid * (1 + s->x[i] * (1 - sigmoid));
	}
}

const ls_op_type ls_op_silu = {
	.name = "silu",
	.formula = "y = x / (1 + e^-x)",
	LS_POINTWISE(value, slope, ls_keeps_input),
	.cases = { LS_CASE_TOKENS(20, 7), LS_CASE_IMAGES(20, 4, 3) },
};
