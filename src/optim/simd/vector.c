/*
 * vector.c - scaling, moving averages and sums of squares.
 */
#include "base/isa.h"
#include "optim/simd.h"

extern const ls_optim_simd LS_ISA_SYMBOL(ls_optim_simd);

static void multiply(float factor, float *x, size_t count)
{
	for (size_t i = 0; i < count; i++)
		x[i] = x[i] * factor;
}

static void average(float weight, const float *restrict x, float *restrict average, size_t count)
{
	for (size_t i = 0; i < count; i++)
		average[i] = average[i] + weight * (x[i] - average[i]);
}

/* Element i goes to lane i % LS_NORM_LANES; squares are exact in double, so only the additions round. */
static double sum_squares(const float *x, size_t count)
{
	double lanes[LS_NORM_LANES] = { 0 };
	size_t i = 0;
	for (; i + LS_NORM_LANES <= count; i += LS_NORM_LANES)
		for (int lane = 0; lane < LS_NORM_LANES; lane++)
			lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
	for (int lane = 0; i < count; i++, lane++)
		lanes[lane] += (double)x[i] * (double)x[i];
	for (int width = LS_NORM_LANES / 2; width > 0; width /= 2)
		for (int lane = 0; lane < width; lane++)
			lanes[lane] += lanes[lane + width];
	return lanes[0];
}

const ls_optim_simd LS_ISA_SYMBOL(ls_optim_simd) = {
	.multiply = multiply,
	.average = average,
	.sum_squares = sum_squares,
};
