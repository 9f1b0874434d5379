/*
 * gemm.c - the portable matrix product: register tiles over compiler vectors.
 *
 * Both forms are  y[i][j] (+)= sum_k x(i, k) * w[k][j]  and differ only in where x(i, k) lies: x[i*ldx + k] in the
 * plain form, x[k*ldx + i] in the transposed one. A tile of MR rows by NV vectors of y is held in registers while k
 * runs; each step loads NV vectors of w, broadcasts MR elements of x and does MR*NV multiply-adds (6x4 on AVX-512 and
 * NEON, 6x2 on AVX2).
 *
 * Invariants
 *  1. An element of y is one chain: it starts from y (accumulate) or zero and adds x*w for k = 0, 1, ... in order, each
 *     step one fused multiply-add. Tiling rows or columns cannot change it, nor can the width of a vector.
 *  2. k is cut in chunks so that a chunk of w stays in the first-level cache. Between chunks the chain waits in y, a
 *     float as in the register: the cut cannot change it either.
 */
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

#define CHUNK 128 /* inner steps per pass: 32 KiB of w at 64 columns */

typedef struct product {
	const float *x, *w;
	float *y;
	int64_t ldx, ldw, ldy;
	int inner; /* steps of this chunk */
	int fresh; /* start from zero, not from y */
} product;

LS_INLINE void tile(const product *p, int mr, int nv, int transposed)
{
	const float *x = p->x, *w = p->w;
	float *const y = p->y;
	const int64_t ldx = p->ldx, ldw = p->ldw, ldy = p->ldy;
	ls_vf sum[12][4];
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			sum[i][v] = p->fresh ? (ls_vf){ 0 } : ls_vf_load(y + i * ldy + v * LS_LANES);
		}
	}
	for (int k = p->inner; k > 0; k--, w += ldw, x += transposed ? ldx : 1) {
		ls_vf b[4];
		LS_UNROLL for (int v = 0; v < nv; v++) b[v] = ls_vf_load(w + v * LS_LANES);
		LS_UNROLL for (int i = 0; i < mr; i++)
		{
			ls_vf a = ls_vf_set(transposed ? x[i] : x[i * ldx]);
			LS_UNROLL for (int v = 0; v < nv; v++) sum[i][v] = ls_vf_fma(a, b[v], sum[i][v]);
		}
	}
	LS_UNROLL for (int i = 0; i < mr; i++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) ls_vf_store(y + i * ldy + v * LS_LANES, sum[i][v]);
	}
}

#include "kernels/simd/tiles.h"

void LS_ISA_SYMBOL(ls_simd_gemm)(const ls_gemm_shape *shape, const float *x, const float *w, float *y)
{
	const int transposed = shape->transposed != 0;
	const int rows = transposed ? shape->depth : shape->rows;
	const int inner = transposed ? shape->rows : shape->depth;
	product p = { .x = x, .w = w, .y = y, .ldx = shape->ldx, .ldw = shape->ldw, .ldy = shape->ldy };

	for (int k = 0; k < inner; k += CHUNK) {
		p.inner = inner - k < CHUNK ? inner - k : CHUNK;
		p.fresh = k == 0 && !shape->accumulate;
		tiles_run(p, rows, shape->cols, transposed);
		p.x += transposed ? p.inner * p.ldx : p.inner;
		p.w += p.inner * p.ldw;
	}
}
