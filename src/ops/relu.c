/*
 * relu.c - rectified linear unit.
 *
 *   y = max(0, x);  dx = dy where y > 0
 */
#include "kernels/simd.h"
#include "ops/pointwise.h"

static void value(const ls_span *s)
{
	for (int64_t i = 0; i < s->count; i++)
		s->y[i] = s->x[i] < 0 ? 0 : s->x[i]; /* NaN stays NaN */
}

static void slope(const ls_span *s)
{
	ls_simd_get()->relu_backward(s->dy, s->y, s->count, s->dx);
}

const ls_op_type ls_op_relu = {
	.name = "relu",
	.formula = "y = max(0, x)",
	LS_POINTWISE(value, slope, ls_keeps_output),
	.cases = { LS_CASE_IMAGES(20, 4, 3), LS_CASE_TOKENS(20, 7) },
};
