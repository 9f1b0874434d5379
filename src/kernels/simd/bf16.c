/*
 * bf16.c - products of bf16 pairs with fp32 instructions: the bits of the bf16 instruction (bf16.h), at half of the speed of
 * fp32 or less.
 *
 * On x86-64 the processor flushes subnormal numbers while a product runs, which is the instruction's rule to the bit. The
 * flushing of arm64 looks at a result before it is rounded, so there, and elsewhere, small results are computed again.
 */
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

#else

/* a*b + c of normal numbers, with the least normal number as the least but 0. */
static float multiply_add_one(float a, float b, float c)
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

#endif

LS_INLINE ls_vf upper(words pair)
{
	return flushed((ls_vf)(pair & 0xffff0000u));
}
LS_INLINE ls_vf lower(words pair)
{
	return flushed((ls_vf)(pair << 16));
}

LS_INLINE void tile(const product *p, int mr, int nv, int transposed)
{
	ls_vf sum[12][4];
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			sum[i][v] = p->fresh ? (ls_vf){ 0 } : flushed(ls_vf_load(p->y + i * p->ldy + v * LS_LANES));
		}
	}
	for (const ls_bf16_part *part = p->parts, *end = part + p->count; part < end; part++) {
		const uint32_t *x = part->x + p->x, *w = part->w + p->w;
		for (int k = p->pairs; k > 0; k--, w += p->ldw, x += transposed ? p->ldx : 1) {
			LS_UNROLL for (int v = 0; v < nv; v++)
			{
				const words right = *(const words_any *)(w + v * LS_LANES);
				LS_UNROLL for (int i = 0; i < mr; i++)
				{
					const words left = (transposed ? x[i] : x[i * p->ldx]) + (words){ 0 };
					sum[i][v] = multiply_add(upper(left), upper(right), sum[i][v]);
					sum[i][v] = multiply_add(lower(left), lower(right), sum[i][v]);
				}
			}
		}
	}
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) ls_vf_store(p->y + i * p->ldy + v * LS_LANES, sum[i][v]);
	}
}

#include "kernels/simd/tiles.h"

void LS_ISA_SYMBOL(ls_simd_bf16_gemm)(const ls_bf16_shape *s, const ls_bf16_part *parts, int count, float *y)
{
	const product p = { 0, 0, y, s->ldx, s->ldw, s->ldy, parts, count, s->pairs, !s->accumulate };
#if defined(__x86_64__)
	const unsigned before = _mm_getcsr();
	_mm_setcsr(before | 0x8040); /* subnormal operands and results are zeros */
	tiles_run(p, s->rows, s->cols, s->transposed != 0);
	_mm_setcsr(before);
#else
	tiles_run(p, s->rows, s->cols, s->transposed != 0);
#endif
}

/* The nearest bf16, ties to even, in the upper half. Subnormal numbers become zeros, a NaN stays one. */
static inline uint32_t nearest(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	const uint32_t size = bits & 0x7fffffffu, sign = bits & 0x80000000u;
	const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
	const uint32_t normal = size < 0x00800000u ? sign : rounded;
	return (size > 0x7f800000u ? bits | 0x00400000u : normal) & 0xffff0000u;
}

void LS_ISA_SYMBOL(ls_simd_bf16_rows)(const float *x, int64_t count, uint32_t *out)
{
	for (int64_t i = 0; i < count / 2; i++)
		out[i] = nearest(x[2 * i]) >> 16 | nearest(x[2 * i + 1]);
}

void LS_ISA_SYMBOL(ls_simd_bf16_pairs)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out)
{
	int64_t r = 0;
	for (; r + 2 <= rows; r += 2, x += 2 * ld, out += cols)
		for (int c = 0; c < cols; c++)
			out[c] = nearest(x[c]) >> 16 | nearest(x[ld + c]);
	for (int c = 0; r < rows && c < cols; c++)
		out[c] = nearest(x[c]) >> 16;
}
