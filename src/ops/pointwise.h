/*
 * pointwise.h - operators that work on each number of one input by itself.
 *
 *   y = f(x);  dx = dy f'(x)
 *
 * The file of such an operator has its formula, its derivative and its row, which LS_POINTWISE() fills but for the name
 * and the cases:
 *
 *   static void value(const ls_span *s);   y from x
 *   static void slope(const ls_span *s);   dx from dy and what is kept: x or y
 *
 * f(0) must be 0, or the row says `.moves_zero = 1`: padded channels are 0 in every value.
 */
#ifndef LS_OPS_POINTWISE_H
#define LS_OPS_POINTWISE_H

#include "ops/shape.h"

/* A thread's floats of the values of an operator, `count` of each. */
struct ls_span {
	const void *attributes;
	int64_t count;
	const float *x;  /* in slope(): only if the row keeps it */
	float *y;        /* also */
	const float *dy; /* in slope() */
	float *dx;
};

void ls_pointwise_forward(const ls_op *op, const ls_pass *pass, ls_member member);
void ls_pointwise_backward(const ls_op *op, const ls_pass *pass, ls_member member);

/* y = 1 / (1 + e^-x) of `count` floats, for other operators (sigmoid.c). */
void ls_sigmoid_of(const float *x, int64_t count, float *y);

/* `kept` is what slope() reads beside dy: ls_keeps_input or ls_keeps_output. */
#define LS_POINTWISE(value_function, slope_function, kept)                                                             \
	LS_INPUTS(1, "x"), .shape = ls_shape_same, .keeps = kept, .value = value_function, .slope = slope_function,    \
			   .forward = ls_pointwise_forward, .backward = ls_pointwise_backward

#endif
