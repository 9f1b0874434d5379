/*
 * bf16_steps.c - products of bf16 pairs in steps with fp32 instructions: the bits of AMX's instruction (bf16.h),
 * several times slower than fp32.
 *
 * A step has two sums beside that of the element, so tiles take two rows at a time, which fit the registers.
 */
#include "kernels/simd/bf16_fma.h"

/* Up to LS_BF16_STEP pairs, each half a sum of its own; their sum is added to `sum`. */
LS_INLINE void step(const product *p, const uint32_t *x, const uint32_t *w, int pairs, int mr, int nv, ls_vf sum[2][4])
{
	ls_vf first[2][4] = { { { 0 } } }, second[2][4] = { { { 0 } } };
	for (int k = 0; k < pairs; k++, w += p->ldw, x++) {
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			const words right = *(const words_any *)(w + v * LS_LANES);
			LS_UNROLL for (int i = 0; i < mr; i++)
			{
				const words left = x[i * p->ldx] + (words){ 0 };
				first[i][v] = multiply_add(lower(left), lower(right), first[i][v]);
				second[i][v] = multiply_add(upper(left), upper(right), second[i][v]);
			}
		}
	}
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			if (pairs < LS_BF16_STEP) { /* the zeros that fill it make a -0 a 0 */
				first[i][v] = sum_of(first[i][v], (ls_vf){ 0 });
				second[i][v] = sum_of(second[i][v], (ls_vf){ 0 });
			}
			sum[i][v] = sum_of(sum[i][v], sum_of(first[i][v], second[i][v]));
		}
	}
}

LS_INLINE void two_rows(const product *p, int row, int mr, int nv)
{
	float *y = p->y + row * p->ldy;
	ls_vf sum[2][4];
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) sum[i][v] =
			p->fresh ? (ls_vf){ 0 } : flushed(ls_vf_load(y + i * p->ldy + v * LS_LANES));
	}
	for (const ls_bf16_part *part = p->parts, *end = part + p->count; part < end; part++)
		for (int k = 0; k < p->pairs; k += LS_BF16_STEP)
			step(p, part->x + p->x + row * p->ldx + k, part->w + p->w + k * p->ldw,
			     p->pairs - k < LS_BF16_STEP ? p->pairs - k : LS_BF16_STEP, mr, nv, sum);
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) ls_vf_store(y + i * p->ldy + v * LS_LANES, sum[i][v]);
	}
}

/* Operands are never transposed here: kernels.turned lays them out. */
LS_INLINE void tile(const product *p, int mr, int nv, int transposed)
{
	(void)transposed;
	for (int i = 0; i + 2 <= mr; i += 2)
		two_rows(p, i, 2, nv);
	if (mr % 2)
		two_rows(p, mr - 1, 1, nv);
}

#include "kernels/simd/tiles.h"

void LS_ISA_SYMBOL(ls_simd_bf16_steps_gemm)(const ls_bf16_shape *s, const ls_bf16_part *parts, int count, float *y)
{
	const product p = { 0, 0, y, s->ldx, s->ldw, s->ldy, parts, count, s->pairs, !s->accumulate };
	const unsigned before = flush_begin();
	tiles_run(p, s->rows, s->cols, 0);
	flush_end(before);
}
