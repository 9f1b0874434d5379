/*
 * gemm.c - the portable matrix product: register tiles over compiler vectors.
 *
 * Both forms are  y[i][j] (+)= sum_k x(i, k) * w[k][j]  and differ only in where x(i, k) lies: x[i*ldx + k] in the
 * plain form, x[k*ldx + i] in the transposed one. A tile of MR rows by NV vectors of y is held in registers while k
 * runs; each step loads NV vectors of w, broadcasts MR elements of x and does MR*NV multiply-adds (6x4 on AVX-512, 6x2
 * on AVX2).
 *
 * Invariants
 *  1. An element of y is one chain: it starts from y (accumulate) or zero and adds x*w for k = 0, 1, ... in order, each
 *     step one multiply-add (fused where the instruction set has it). Tiling rows or columns cannot change it.
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

typedef void tile_function(const product *p);

#define TILE(mr, nv)                                                                                                   \
	static void plain_##mr##_##nv(const product *p)                                                                \
	{                                                                                                              \
		tile(p, mr, nv, 0);                                                                                    \
	}                                                                                                              \
	static void transposed_##mr##_##nv(const product *p)                                                           \
	{                                                                                                              \
		tile(p, mr, nv, 1);                                                                                    \
	}
#define TILES_TO_6(nv) TILE(1, nv) TILE(2, nv) TILE(3, nv) TILE(4, nv) TILE(5, nv) TILE(6, nv)
#define TILES_TO_12(nv) TILES_TO_6(nv) TILE(7, nv) TILE(8, nv) TILE(9, nv) TILE(10, nv) TILE(11, nv) TILE(12, nv)
#define ROW_TO_6(form, nv) form##_1_##nv, form##_2_##nv, form##_3_##nv, form##_4_##nv, form##_5_##nv, form##_6_##nv
#define ROW_TO_12(form, nv)                                                                                            \
	ROW_TO_6(form, nv), form##_7_##nv, form##_8_##nv, form##_9_##nv, form##_10_##nv, form##_11_##nv, form##_12_##nv

/* Tiles by width: how many rows fit the registers beside them, and the kernel of every number of rows up to that. */
typedef struct tile_width {
	int vectors, rows;
	tile_function *kernel[2][12]; /* [transposed][rows - 1] */
} tile_width;

#if LS_LANES == 16
TILES_TO_12(1)
TILES_TO_12(2)
TILES_TO_6(4)
static const tile_width widths[] = {
	{ 4, 6, { { ROW_TO_6(plain, 4) }, { ROW_TO_6(transposed, 4) } } },
	{ 2, 12, { { ROW_TO_12(plain, 2) }, { ROW_TO_12(transposed, 2) } } },
	{ 1, 12, { { ROW_TO_12(plain, 1) }, { ROW_TO_12(transposed, 1) } } },
};
#else
TILES_TO_6(2)
static const tile_width widths[] = {
	{ 2, 6, { { ROW_TO_6(plain, 2) }, { ROW_TO_6(transposed, 2) } } },
};
#endif

/* Rows of the next tile: full ones first, then the rest in two even halves rather than a tile of a row or two. */
static int tile_rows(int left, int most)
{
	if (left >= 2 * most)
		return most;
	return left > most ? (left + 1) / 2 : left;
}

/* The tiles of a strip of columns as wide as `width`; steps of one row of y: ldy, and of x: ldx or 1. */
static void strip_run(product p, const tile_width *width, int rows, int transposed)
{
	for (int left = rows; left > 0;) {
		int taken = tile_rows(left, width->rows);
		width->kernel[transposed][taken - 1](&p);
		p.x += transposed ? taken : taken * p.ldx;
		p.y += taken * p.ldy;
		left -= taken;
	}
}

/* One chunk of the inner dimension: widest strips first; cols is a multiple of the narrowest. */
static void chunk_run(product p, int rows, int cols, int transposed)
{
	const tile_width *width = widths;
	while (cols > 0) {
		int strip = width->vectors * LS_LANES;
		if (strip > cols) {
			width++;
			continue;
		}
		strip_run(p, width, rows, transposed);
		p.w += strip;
		p.y += strip;
		cols -= strip;
	}
}

void LS_ISA_SYMBOL(ls_simd_gemm)(const ls_gemm_shape *shape, const float *x, const float *w, float *y)
{
	const int transposed = shape->transposed != 0;
	const int rows = transposed ? shape->depth : shape->rows;
	const int inner = transposed ? shape->rows : shape->depth;
	product p = { .x = x, .w = w, .y = y, .ldx = shape->ldx, .ldw = shape->ldw, .ldy = shape->ldy };

	for (int k = 0; k < inner; k += CHUNK) {
		p.inner = inner - k < CHUNK ? inner - k : CHUNK;
		p.fresh = k == 0 && !shape->accumulate;
		chunk_run(p, rows, shape->cols, transposed);
		p.x += transposed ? p.inner * p.ldx : p.inner;
		p.w += p.inner * p.ldw;
	}
}
