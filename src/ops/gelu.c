/*
 * gelu.c - Gaussian error linear unit.
 *
 *   y = x Phi(x), Phi the normal distribution;  dx = dy (Phi(x) + x Phi'(x))
 *   approximate: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), and its derivative
 */
#include "kernels/simd.h"
#include "ops/pointwise.h"

static int is_approximate(const ls_span *s)
{
	return ((const ls_gelu_options *)s->attributes)->approximate;
}

static void value(const ls_span *s)
{
	ls_simd_get()->gelu(s->x, s->count, is_approximate(s), s->y);
}

static void slope(const ls_span *s)
{
	ls_simd_get()->gelu_backward(s->dy, s->x, s->count, is_approximate(s), s->dx);
}

const ls_op_type ls_op_gelu = {
	.name = "gelu",
	.formula = "y = x Phi(x), or its tanh form",
	LS_ATTRIBUTES(ls_gelu_options, "approximate"),
	LS_POINTWISE(value, slope, ls_keeps_input),
	.cases = { LS_CASE_TOKENS(20, 7, .attributes = &(ls_gelu_options){ 0 }),
		   LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_gelu_options){ .approximate = 1 }) },
};
