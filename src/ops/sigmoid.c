/*
 * sigmoid.c - the logistic function.
 *
 *   y = 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2;  dx = dy y (1 - y)
 *
 * It is computed by tanh, which has the same bits on every processor.
 */
#include "kernels/simd.h"
#include "ops/pointwise.h"

void ls_sigmoid_of(const float *x, int64_t count, float *y)
{
	for (int64_t i = 0; i < count; i++)
		y[i] = 0.5f * x[i];
	ls_simd_get()->tanh(y, count, y);
	for (int64_t i = 0; i < count; i++)
		y[i] = 0.5f + 0.5f * y[i];
}

static void value(const ls_span *s)
{
	ls_sigmoid_of(s->x, s->count, s->y);
}

static void slope(const ls_span *s)
{
	for (int64_t i = 0; i < s->count; i++)
		s->dx[i] = s->dy[i] * s->y[i] * (1 - s->y[i]);
}

const ls_op_type ls_op_sigmoid = {
	.name = "sigmoid",
	.formula = "y = 1 / (1 + e^-x)",
	.moves_zero = 1,
	LS_POINTWISE(value, slope, ls_keeps_output),
	.cases = { LS_CASE_TOKENS(20, 7), LS_CASE_IMAGES(20, 4, 3) },
};
