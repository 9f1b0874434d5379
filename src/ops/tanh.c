/*
 * tanh.c - hyperbolic tangent.
 *
 *   y = tanh x;  dx = dy (1 - y^2)
 */
#include "kernels/simd.h"
#include "ops/pointwise.h"

static void value(const ls_span *s)
{
	ls_simd_get()->tanh(s->x, s->count, s->y);
}

static void slope(const ls_span *s)
{
	ls_simd_get()->tanh_backward(s->dy, s->y, s->count, s->dx);
}

const ls_op_type ls_op_tanh = {
	.name = "tanh",
	.formula = "y = tanh(x)",
	LS_POINTWISE(value, slope, ls_keeps_output),
	.cases = { LS_CASE_TOKENS(20, 7), LS_CASE_IMAGES(20, 4, 3) },
};
