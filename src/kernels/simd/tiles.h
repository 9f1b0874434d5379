/*
 * tiles.h - a product as tiles of its result that fit the registers.
 *
 * Included behind `product`, a struct with the operands x, w, y and their row strides ldx, ldw, ldy, and
 *     LS_INLINE void tile(const product *p, int mr, int nv, int transposed)
 * which computes mr rows of nv vectors of y. Makes tiles_run(), which covers y (rows, cols) with them; cols is a
 * multiple of 16.
 */
#ifndef LS_KERNELS_SIMD_TILES_H
#define LS_KERNELS_SIMD_TILES_H

#include "kernels/simd/vec.h"

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
#elif defined(LS_ISA_IS_neon)
TILES_TO_6(4)
static const tile_width widths[] = {
	{ 4, 6, { { ROW_TO_6(plain, 4) }, { ROW_TO_6(transposed, 4) } } },
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

/* Widest strips first; cols is a multiple of the narrowest. */
static void tiles_run(product p, int rows, int cols, int transposed)
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

#endif
