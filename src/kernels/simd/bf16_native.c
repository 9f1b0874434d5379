/*
 * bf16_native.c - products of bf16 pairs by AVX512-BF16's instruction. Built with it and used where the processor has
 * it (simd_dispatch.c); empty for other instruction sets.
 */
#if defined(LS_ISA_IS_avx512)
#include "kernels/simd/bf16.h"

LS_INLINE void tile(const product *p, int mr, int nv, int transposed)
{
	__m512 sum[12][4];
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			sum[i][v] = p->fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(p->y + i * p->ldy + v * 16);
		}
	}
	for (const ls_bf16_part *part = p->parts, *end = part + p->count; part < end; part++) {
		const uint32_t *x = part->x + p->x, *w = part->w + p->w;
		for (int k = p->pairs; k > 0; k--, w += p->ldw, x += transposed ? p->ldx : 1) {
			__m512bh right[4];
			LS_UNROLL for (int v = 0; v < nv; v++) right[v] = (__m512bh)_mm512_loadu_si512(w + v * 16);
			LS_UNROLL for (int i = 0; i < mr; i++)
			{
				const __m512bh left =
					(__m512bh)_mm512_set1_epi32((int)(transposed ? x[i] : x[i * p->ldx]));
				LS_UNROLL for (int v = 0; v < nv; v++) sum[i][v] =
					_mm512_dpbf16_ps(sum[i][v], left, right[v]);
			}
		}
	}
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) _mm512_storeu_ps(p->y + i * p->ldy + v * 16, sum[i][v]);
	}
}

#include "kernels/simd/tiles.h"

static void gemm(const ls_bf16_shape *s, const ls_bf16_part *parts, int count, float *y)
{
	const product p = { 0, 0, y, s->ldx, s->ldw, s->ldy, parts, count, s->pairs, !s->accumulate };
	tiles_run(p, s->rows, s->cols, s->transposed != 0);
}

void ls_bf16_native_rows(const float *x, int64_t count, uint32_t *out)
{
	int64_t i = 0;
	for (; i + 32 <= count; i += 32)
		_mm512_storeu_si512(out + i / 2,
				    (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(x + i)));
	for (; i < count; i += 16)
		_mm256_storeu_si256((__m256i *)(out + i / 2), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + i)));
}

void ls_bf16_native_pairs(const float *x, int64_t count, int cols, int64_t ld, uint32_t *out)
{
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
					       6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	for (int64_t r = 0; r < count; r += 2, x += 2 * ld, out += cols)
		for (int c = 0; c < cols; c += 16) {
			__m512 second = r + 1 < count ? _mm512_loadu_ps(x + ld + c) : _mm512_setzero_ps();
			__m512i both = (__m512i)_mm512_cvtne2ps_pbh(second, _mm512_loadu_ps(x + c));
			_mm512_storeu_si512(out + c, _mm512_permutexvar_epi16(order, both));
		}
}

const ls_bf16_kernels ls_bf16_native = { gemm, ls_bf16_native_rows, ls_bf16_native_pairs, NULL };
#endif
typedef int ls_bf16_native_may_be_empty;
