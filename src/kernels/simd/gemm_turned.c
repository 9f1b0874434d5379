/*
 * gemm_turned.c - the product with weights that lie (cols, depth), for a few rows of x.
 *
 * For many rows a block of weights is transposed once and gemm() follows. A few rows are not worth the trip through the
 * cache: tiles of weights are turned in registers (turn.h) and multiplied there. An element of y is the chain of
 * gemm.c: from y or zero, k = 0, 1, ... in order, a fused multiply-add each.
 */
#include "kernels/simd/parts.h"
#include "kernels/simd/turn.h"

/* `nv` vectors of outputs of `rows` rows. */
LS_INLINE void strip(const ls_gemm_shape *s, const float *x, const float *w, float *y, int rows, int nv)
{
	ls_vf sum[LS_GEMM_TURNED_ROWS][2];

	LS_UNROLL for (int r = 0; r < rows; r++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			sum[r][v] = s->accumulate ? ls_vf_load(y + (int64_t)r * s->ldy + v * LS_LANES) : (ls_vf){ 0 };
		}
	}
	for (int k = 0; k < s->depth; k += 4) {
		LS_UNROLL for (int v = 0; v < nv; v++)
		{
			ls_vf column[4];
			turn_tile(w + (int64_t)v * LS_LANES * s->ldw + k, s->ldw, column);
			LS_UNROLL for (int j = 0; j < 4; j++)
			{
				LS_UNROLL for (int r = 0; r < rows; r++)
				{
					ls_vf a = ls_vf_set(x[(int64_t)r * s->ldx + k + j]);
					sum[r][v] = ls_vf_fma(a, column[j], sum[r][v]);
				}
			}
		}
	}
	LS_UNROLL for (int r = 0; r < rows; r++)
	{
		LS_UNROLL for (int v = 0; v < nv; v++) ls_vf_store(y + (int64_t)r * s->ldy + v * LS_LANES, sum[r][v]);
	}
}

#define STRIPS(rows)                                                                                                   \
	static void strips_##rows(const ls_gemm_shape *s, const float *x, const float *w, float *y)                    \
	{                                                                                                              \
		int c = 0;                                                                                             \
		for (; c + 2 * LS_LANES <= s->cols; c += 2 * LS_LANES)                                                 \
			strip(s, x, w + (int64_t)c * s->ldw, y + c, rows, 2);                                          \
		for (; c < s->cols; c += LS_LANES)                                                                     \
			strip(s, x, w + (int64_t)c * s->ldw, y + c, rows, 1);                                          \
	}
STRIPS(1)
STRIPS(2)
STRIPS(3)
STRIPS(4)

void LS_ISA_SYMBOL(ls_simd_gemm_turned)(const ls_gemm_shape *s, const float *x, const float *w, float *y)
{
	static void (*const strips[LS_GEMM_TURNED_ROWS])(const ls_gemm_shape *, const float *, const float *,
							 float *) = { strips_1, strips_2, strips_3, strips_4 };
	strips[s->rows - 1](s, x, w, y);
}
