/*
 * bf16_fma.h - the multiply-adds of bf16.h by fp32 instructions, and additions by the same rules.
 *
 * On x86-64 the processor flushes subnormal numbers while a product runs, which is the instruction's rule
 * to the bit. The flushing of arm64 looks at a result before it is rounded, so there, and elsewhere,
 * small results are computed again.
 */
#ifndef LS_KERNELS_SIMD_BF16_FMA_H
#define LS_KERNELS_SIMD_BF16_FMA_H

#include <math.h>
#include <string.h>

#include "kernels/simd/bf16.h"

typedef uint32_t words __attribute__((vector_size(4 * LS_LANES)));
typedef uint32_t words_any __attribute__((vector_size(4 * LS_LANES), aligned(4), may_alias));

#if defined(__x86_64__)

LS_INLINE ls_vf multiply_add(ls_vf a, ls_vf b, ls_vf c)
{
	return ls_vf_fma(a, b, c);
}
LS_INLINE ls_vf flushed(ls_vf v)
{
	return v; /* by the processor, when it is used */
}
LS_INLINE ls_vf sum_of(ls_vf a, ls_vf b)
{
	return a + b;
}
LS_INLINE unsigned flush_begin(void)
{
	const unsigned before = _mm_getcsr();
	_mm_setcsr(before | 0x8040); /* subnormal operands and results are zeros */
	return before;
}
LS_INLINE void flush_end(unsigned before)
{
	_mm_setcsr(before);
}

#else

/* a*b + c of normal numbers, with the least normal number as the least but 0. */
static inline float multiply_add_one(float a, float b, float c)
{
	const double product = (double)a * (double)b, sum = product + (double)c, part = sum - product;
	const double rest = (product - (sum - part)) + ((double)c - part);
	uint64_t bits;
	double odd;
	memcpy(&bits, &sum, sizeof(bits));
	if ((rest < 0 || rest > 0) && !(bits & 1)) /* rounded to odd: fma.h */
		bits = (rest < 0) == (sum < 0) ? bits + 1 : bits - 1;
	memcpy(&odd, &bits, sizeof(odd));
	return fabs(odd) < 0x1p-126 - 0x1p-151 ? copysignf(0.0f, (float)odd) : (float)odd;
}

LS_INLINE ls_vf multiply_add(ls_vf a, ls_vf b, ls_vf c)
{
	ls_vf sum = ls_vf_fma(a, b, c);
	const words size = (words)sum << 1, small = (words)(size - 1 < 2 * 0x00800000u); /* not 0, at most 2^-126 */
	if (__builtin_expect((small[0] | small[1] | small[2] | small[3]) != 0, 0))
		for (int i = 0; i < LS_LANES; i++)
			sum[i] = multiply_add_one(a[i], b[i], c[i]);
	return sum;
}
LS_INLINE ls_vf flushed(ls_vf v)
{
	return ls_vf_select(((ls_vi)v & 0x7f800000) != 0, v, (ls_vf)((ls_vi)v & ~0x7fffffff));
}
LS_INLINE ls_vf sum_of(ls_vf a, ls_vf b)
{
	return multiply_add(a, ls_vf_set(1), b);
}
LS_INLINE unsigned flush_begin(void)
{
	return 0;
}
LS_INLINE void flush_end(unsigned before)
{
	(void)before;
}

#endif

LS_INLINE ls_vf upper(words pair)
{
	return flushed((ls_vf)(pair & 0xffff0000u));
}
LS_INLINE ls_vf lower(words pair)
{
	return flushed((ls_vf)(pair << 16));
}

#endif
