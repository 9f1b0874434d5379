/*
 * update.c - the element-wise loops of the optimizers.
 *
 * The order of operations is PyTorch's (torch.optim, single-tensor form). A term that is switched off is multiplied by
 * zero, or by one, rather than branched around: for finite numbers that is exact and memory hides it. An element whose
 * parameter, gradient and state are all zero stays zero, which is what keeps the padding of blocked weights clean.
 */
#include <math.h>

#include "base/isa.h"
#include "optim/simd.h"

extern const ls_optim_simd LS_ISA_SYMBOL(ls_optim_simd);

static void sgd(const ls_sgd_scalars *scalars, float *restrict params, const float *restrict grads, size_t count)
{
	const ls_sgd_scalars s = *scalars;
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.l2 * params[i];
		params[i] = params[i] + s.step * d;
	}
}

static void sgd_momentum(const ls_sgd_scalars *scalars, float *restrict params, const float *restrict grads,
			 float *restrict buffer, size_t count)
{
	const ls_sgd_scalars s = *scalars;
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.l2 * params[i];
		float b = s.carry * buffer[i] + d;
		buffer[i] = b;
		params[i] = params[i] + s.step * b;
	}
}

static void sgd_nesterov(const ls_sgd_scalars *scalars, float *restrict params, const float *restrict grads,
			 float *restrict buffer, size_t count)
{
	const ls_sgd_scalars s = *scalars;
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.l2 * params[i];
		float b = s.carry * buffer[i] + d;
		buffer[i] = b;
		params[i] = params[i] + s.step * (d + s.momentum * b);
	}
}

static void adam(const ls_adam_scalars *scalars, float *restrict params, const float *restrict grads,
		 float *restrict mean, float *restrict square, size_t count)
{
	const ls_adam_scalars s = *scalars;
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.l2 * params[i];
		float m = s.beta1 * mean[i] + s.rest1 * d;
		float v = s.beta2 * square[i] + (s.rest2 * d) * d;
		mean[i] = m;
		square[i] = v;
		params[i] = s.keep * params[i] + (s.step * m) / (sqrtf(v) + s.epsilon);
	}
}

static void lamb(const ls_lamb_scalars *scalars, const float *restrict params, float *restrict grads,
		 float *restrict mean, float *restrict square, size_t count)
{
	const ls_lamb_scalars s = *scalars;
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale;
		float m = s.beta1 * mean[i] + s.rest1 * d;
		float v = s.beta2 * square[i] + (s.rest2 * d) * d;
		mean[i] = m;
		square[i] = v;
		grads[i] = (s.rise * m) / (sqrtf(v) + s.epsilon) + s.decay * params[i];
	}
}

static void multiply(float factor, float *x, size_t count)
{
	for (size_t i = 0; i < count; i++)
		x[i] = x[i] * factor;
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
	.sgd = sgd,
	.sgd_momentum = sgd_momentum,
	.sgd_nesterov = sgd_nesterov,
	.adam = adam,
	.lamb = lamb,
	.multiply = multiply,
	.sum_squares = sum_squares,
};
