/*
 * gelu.c - Gaussian error linear units and the hyperbolic tangent.
 *
 * Both forms of the unit are x * P(x) with P(-x) = 1 - P(x). With a = |x| and the small tail T(a) = P(-a),
 *   gelu(x) = max(0, x) - a T(a),    gelu'(x) = x < 0 ? D(a) : 1 - D(a),    D(a) = T(a) + a T'(a),
 * which loses no digits on either side and is right at both infinities (inf and 0; 1 and 0).
 *   erf form:   T(a) = E m(a), E = e^(-a^2/2), m by a polynomial; T'(a) = -E / sqrt(2 pi)
 *   tanh form:  T(a) = e / (1 + e), e = e^(-u), u = 2 sqrt(2/pi) (a + 0.044715 a^3); T'(a) = -u' T / (1 + e)
 */
#include <stddef.h>

#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"
#include "kernels/simd/vexp.h"

#define REACH 5.6f /* where a T(a) is below 1e-7: a is held there, so that m stays in its range and a finite */

/*
 * m(a) = e^(a^2/2) (1 - erf(a / sqrt 2)) / 2 on [0, REACH], fitted so that E^0.9 times its error is at most 2.6e-8.
 */
static const float tail[12] = {
	0.4999999741f,   -0.3989398528f,  0.2499622388f,    -0.1327513158f,   0.06177993189f,  -0.02525475593f,
	0.008804467814f, -0.00247508907f, 0.0005219679951f, -7.558771688e-5f, 6.589072081e-6f, -2.577695921e-7f,
};

#define SLOPE 1.5957691216057308f              /* 2 sqrt(2/pi) */
#define CUBE (1.5957691216057308f * 0.044715f) /* of u = a (SLOPE + CUBE a^2) */
#define ROOT 0.3989422804014327f               /* 1 / sqrt(2 pi) */

LS_INLINE ls_vf magnitude(ls_vf x)
{
	return (ls_vf)((ls_vi)x & 0x7fffffff);
}

LS_INLINE ls_vf mills(ls_vf a)
{
	ls_vf m = ls_vf_set(tail[11]);
	LS_UNROLL for (int i = 10; i >= 0; i--) m = ls_vf_fma(m, a, ls_vf_set(tail[i]));
	return m;
}

/* What value and slope have in common: a, the exponential, and in the erf form m(a). */
typedef struct common {
	ls_vf a, e, m;
} common;

LS_INLINE common common_of(ls_vf x, int approximate)
{
	const ls_vf wide = magnitude(x), a = ls_vf_min(ls_vf_set(REACH), wide);
	if (!approximate)
		return (common){ a, ls_vf_exp_negative(x * x * -0.5f), mills(a) };
	const ls_vf u = wide * ls_vf_fma(wide * wide, ls_vf_set(CUBE), ls_vf_set(SLOPE));
	return (common){ .a = a, .e = ls_vf_exp_negative(-u) };
}

LS_INLINE ls_vf gelu(ls_vf x, common c, int approximate)
{
	const ls_vf t = approximate ? c.e / (c.e + 1.0f) : c.e * c.m;
	return ls_vf_fma(-c.a, t, ls_vf_relu(x));
}

LS_INLINE ls_vf gelu_slope(ls_vf x, common c, int approximate)
{
	ls_vf d;
	if (approximate) {
		const ls_vf r = 1.0f / (c.e + 1.0f), t = c.e * r;
		const ls_vf bend = c.a * ls_vf_fma(c.a * c.a, ls_vf_set(3 * CUBE), ls_vf_set(SLOPE));
		d = ls_vf_fma(-(bend * r), t, t);
	} else {
		d = c.e * ls_vf_fma(c.a, ls_vf_set(-ROOT), c.m);
	}
	return ls_vf_select(x < 0, d, 1.0f - d);
}

/* tanh a = w / (w + 2), w = e^(2a) - 1, which is 2^n (e^r - 1) + (2^n - 1): nothing is lost near 0. */
LS_INLINE ls_vf hyperbolic(ls_vf x)
{
	ls_vf a = ls_vf_min(ls_vf_set(10.0f), magnitude(x)); /* tanh 10 rounds to 1 */
	ls_vexp e = ls_vf_exp_parts(a + a);
	ls_vf w = ls_vf_fma(e.q, e.scale, e.scale - 1.0f);
	return (ls_vf)((ls_vi)(w / (w + 2.0f)) | ((ls_vi)x & ~0x7fffffff));
}

LS_INLINE void gelu_all(const float *x, int64_t count, int approximate, float *y, float *slope)
{
	for (int64_t i = 0; i < count; i += LS_LANES) {
		const ls_vf v = ls_vf_load(x + i);
		const common c = common_of(v, approximate);
		ls_vf_store(y + i, gelu(v, c, approximate));
		if (slope)
			ls_vf_store(slope + i, gelu_slope(v, c, approximate));
	}
}

void LS_ISA_SYMBOL(ls_simd_gelu)(const float *x, int64_t count, int approximate, float *y)
{
	if (approximate)
		gelu_all(x, count, 1, y, NULL);
	else
		gelu_all(x, count, 0, y, NULL);
}

void LS_ISA_SYMBOL(ls_simd_gelu_slope)(const float *x, int64_t count, int approximate, float *y, float *slope)
{
	if (approximate)
		gelu_all(x, count, 1, y, slope);
	else
		gelu_all(x, count, 0, y, slope);
}

LS_INLINE void gelu_backward_all(const float *dy, const float *x, int64_t count, int approximate, float *dx)
{
	for (int64_t i = 0; i < count; i += LS_LANES) {
		const ls_vf v = ls_vf_load(x + i);
		ls_vf_store(dx + i, ls_vf_load(dy + i) * gelu_slope(v, common_of(v, approximate), approximate));
	}
}

void LS_ISA_SYMBOL(ls_simd_gelu_backward)(const float *dy, const float *x, int64_t count, int approximate, float *dx)
{
	if (approximate)
		gelu_backward_all(dy, x, count, 1, dx);
	else
		gelu_backward_all(dy, x, count, 0, dx);
}

void LS_ISA_SYMBOL(ls_simd_tanh)(const float *x, int64_t count, float *y)
{
	for (int64_t i = 0; i < count; i += LS_LANES)
		ls_vf_store(y + i, hyperbolic(ls_vf_load(x + i)));
}

void LS_ISA_SYMBOL(ls_simd_tanh_backward)(const float *dy, const float *y, int64_t count, float *dx)
{
	for (int64_t i = 0; i < count; i += LS_LANES) {
		ls_vf t = ls_vf_load(y + i);
		ls_vf_store(dx + i, ls_vf_load(dy + i) * ls_vf_fma(-t, t, ls_vf_set(1.0f)));
	}
}
