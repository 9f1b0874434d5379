/*
 * fma.h - a*b + c rounded once, for processors without such an instruction.
 *
 * A product of two floats is exact in a double (48 of 53 bits, and no exponent of a float's product leaves a double's).
 * The sum with c is not, and rounding it to a double and then to a float may round twice: but only where the double
 * lies exactly between two floats, or where the float would be subnormal. There the sum is rounded to odd instead: of
 * the two doubles around the exact sum, the one whose last bit is 1. It remembers that there was a rest, and on which
 * side, and since a double has more than two bits beyond a float, the second rounding comes out right (Boldo and
 * Melquiond 2008).
 *
 * Infinities, NaN and signed zeros come out as the instruction's: the rest is then no number, and no correction is
 * made. Exact in round to nearest, without flushing of subnormals: base/float_rules.h sees to both.
 */
#ifndef LS_KERNELS_SIMD_FMA_H
#define LS_KERNELS_SIMD_FMA_H

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>

/* a*b + c in double, rounded to odd. */
static inline __m128d ls_fma_odd(__m128d a, __m128d b, __m128d c)
{
	const __m128i one = _mm_set1_epi64x(1);
	const __m128d zero = _mm_setzero_pd(), product = _mm_mul_pd(a, b), sum = _mm_add_pd(product, c);
	const __m128d part = _mm_sub_pd(sum, product);
	const __m128d rest = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part));
	const __m128i bits = _mm_castpd_si128(sum);
	const __m128i is_inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(rest, zero), _mm_cmpgt_pd(rest, zero)));
	const __m128i is_even = _mm_sub_epi64(_mm_and_si128(bits, one), one); /* all ones, or 0 */
	const __m128i is_towards_zero = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(rest)), 63);
	const __m128i step = _mm_sub_epi64(one, _mm_add_epi64(is_towards_zero, is_towards_zero)); /* 1 or -1 */
	return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, _mm_and_si128(is_inexact, is_even))));
}

static __attribute__((noinline, unused)) __m128 ls_fma_hard(__m128 a, __m128 b, __m128 c)
{
	const __m128d low = ls_fma_odd(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
	const __m128d high = ls_fma_odd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
					_mm_cvtps_pd(_mm_movehl_ps(c, c)));
	return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

/* Four at once; the hard cases are rare, and looked for in the bits of the doubles. */
static inline __attribute__((always_inline)) __m128 ls_fma_emulated(__m128 a, __m128 b, __m128 c)
{
	const __m128i below = _mm_set1_epi32(0x1fffffff), half = _mm_set1_epi32(0x10000000);
	const __m128i size = _mm_set1_epi32(0x7fffffff), least = _mm_set1_epi32(0x38100000); /* of 2^-126 */
	const __m128d low = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
	const __m128d high =
		_mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b))),
			   _mm_cvtps_pd(_mm_movehl_ps(c, c)));
	const __m128 words[2] = { _mm_castpd_ps(low), _mm_castpd_ps(high) };
	const __m128i last = _mm_castps_si128(_mm_shuffle_ps(words[0], words[1], _MM_SHUFFLE(2, 0, 2, 0)));
	const __m128i first =
		_mm_and_si128(_mm_castps_si128(_mm_shuffle_ps(words[0], words[1], _MM_SHUFFLE(3, 1, 3, 1))), size);
	const __m128i is_tie = _mm_cmpeq_epi32(_mm_and_si128(last, below), half);
	const __m128i is_tiny =
		_mm_and_si128(_mm_cmpgt_epi32(least, first), _mm_cmpgt_epi32(first, _mm_setzero_si128()));
	if (__builtin_expect(_mm_movemask_epi8(_mm_or_si128(is_tie, is_tiny)) != 0, 0))
		return ls_fma_hard(a, b, c);
	return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

#elif defined(__FP_FAST_FMAF)

static inline float ls_fma_one(float a, float b, float c)
{
	return __builtin_fmaf(a, b, c); /* an instruction of this processor */
}

#else
#include <string.h>

static inline float ls_fma_one(float a, float b, float c)
{
	const double product = (double)a * (double)b, sum = product + (double)c, part = sum - product;
	const double rest = (product - (sum - part)) + ((double)c - part);
	uint64_t bits;
	double odd;
	memcpy(&bits, &sum, sizeof(bits));
	if ((rest < 0 || rest > 0) && !(bits & 1))
		bits = (rest < 0) == (sum < 0) ? bits + 1 : bits - 1;
	memcpy(&odd, &bits, sizeof(odd));
	return (float)odd;
}

#endif
#endif
