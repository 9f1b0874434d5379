/*
 * explog.h - exponential and logarithm by polynomials, so that a loss has the same bits with every C library.
 *
 * Branch-free on plain floats: a loop over an array of either becomes vector code.
 */
#ifndef LS_KERNELS_SIMD_EXPLOG_H
#define LS_KERNELS_SIMD_EXPLOG_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ls_float_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline float ls_bits_float(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/*
 * e^x for x <= 0 (softmax subtracts the maximum): e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2.
 * Below -87.3, where the result leaves the normal numbers, it is 0. NaN stays NaN; exp(0) is exactly 1.
 */
static inline float ls_exp_negative(float x)
{
	const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, kept in the low bits */
	float t = x < -87.3f ? -87.3f : x;
	float shifted = t * 1.44269504088896341f + magic;
	float n = shifted - magic;
	float r = (t - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts: n times the first is exact */
	float q = 1.0f / 5040;
	q = q * r + 1.0f / 720;
	q = q * r + 1.0f / 120;
	q = q * r + 1.0f / 24;
	q = q * r + 1.0f / 6;
	q = q * r + 0.5f;
	q = (q * r) * r + r;                                                       /* e^r - 1 */
	float scale = ls_bits_float((ls_float_bits(shifted) << 23) + 0x3f800000u); /* 2^n */
	float e = (q + 1.0f) * scale;
	return x < -87.3f ? 0 : e;
}

/*
 * ln x for x >= 1: x = 2^n m, m in [sqrt(1/2), sqrt(2)); s = (m-1)/(m+1), ln m = 2 (s + s^3/3 + s^5/5 + ...).
 * Infinite and NaN come back as they are.
 */
static inline float ls_log_above_one(float x)
{
	uint32_t bits = ls_float_bits(x) - 0x3f3504f3u; /* sqrt(1/2) */
	float n = (float)((int32_t)bits >> 23);
	float m = ls_bits_float((bits & 0x007fffffu) + 0x3f3504f3u);
	float f = m - 1.0f;
	float s = f / (2.0f + f), z = s * s;
	float q = 1.0f / 11;
	q = q * z + 1.0f / 9;
	q = q * z + 1.0f / 7;
	q = q * z + 1.0f / 5;
	q = q * z + 1.0f / 3;
	/* f - s*f = 2s without its rounding error, as f = m - 1 is exact: ln m = f - s*(f - 2 z q) */
	float log_m = f - s * (f - 2.0f * (z * q));
	float result = (n * -2.12194440e-4f + log_m) + n * 0.693359375f;
	return x - x == 0 ? result : x;
}

#endif
