/*
 * bf16.c - products of bf16 pairs with fp32 instructions: the bits of the bf16 instruction (bf16.h), at half
 * of the speed of fp32 or less.
 */
#include <string.h>

#include "kernels/simd/bf16_fma.h"

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
	const unsigned before = flush_begin();
	tiles_run(p, s->rows, s->cols, s->transposed != 0);
	flush_end(before);
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

void LS_ISA_SYMBOL(ls_simd_bf16_turned)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out,
					int64_t ld_out)
{
	for (int64_t r = 0; r < rows; r += 2)
		for (int c = 0; c < cols; c++) {
			const float *from = x + r * ld + c;
			out[c * ld_out + r / 2] = nearest(from[0]) >> 16 | (r + 1 < rows ? nearest(from[ld]) : 0);
		}
}
