/*
 * vexp.h - the exponential of a vector, by a polynomial: the same bits with every C library, and no branch.
 *
 * e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2, as in explog.h but with fused multiply-adds.
 */
#ifndef LS_KERNELS_SIMD_VEXP_H
#define LS_KERNELS_SIMD_VEXP_H

#include "kernels/simd/vec.h"

/* e^x = (1 + q) * scale for -88 <= x <= 88; scale is a power of two, or 0 where the result leaves the normal
 * numbers. A NaN makes q a NaN. */
typedef struct ls_vexp {
	ls_vf q, scale;
} ls_vexp;

LS_INLINE ls_vexp ls_vf_exp_parts(ls_vf x)
{
	typedef uint32_t bits __attribute__((vector_size(4 * LS_LANES))); /* unsigned: they may wrap around */
	const ls_vf magic =
		ls_vf_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer, kept in the low bits */
	ls_vf shifted = ls_vf_fma(x, ls_vf_set(1.44269504088896341f), magic);
	ls_vf n = shifted - magic;
	ls_vf r = ls_vf_fma(n, ls_vf_set(-0.693359375f), x); /* ln 2 in two parts: n times the first is exact */
	r = ls_vf_fma(n, ls_vf_set(2.12194440e-4f), r);
	ls_vf q = ls_vf_set(1.0f / 5040);
	q = ls_vf_fma(q, r, ls_vf_set(1.0f / 720));
	q = ls_vf_fma(q, r, ls_vf_set(1.0f / 120));
	q = ls_vf_fma(q, r, ls_vf_set(1.0f / 24));
	q = ls_vf_fma(q, r, ls_vf_set(1.0f / 6));
	q = ls_vf_fma(q, r, ls_vf_set(0.5f));
	return (ls_vexp){ .q = ls_vf_fma(q * r, r, r), .scale = (ls_vf)(((bits)shifted << 23) + 0x3f800000u) };
}

/* e^x for x <= 0; 0 below -87.7. At -88 n is -127, which makes the scale 0. NaN stays NaN; e^0 is exactly 1. */
LS_INLINE ls_vf ls_vf_exp_negative(ls_vf x)
{
	ls_vexp e = ls_vf_exp_parts(ls_vf_max(ls_vf_set(-88.0f), x));
	return ls_vf_fma(e.q, e.scale, e.scale);
}

#endif
