/*
 * bf16_amx.c - products of bf16 pairs by AMX's tile instruction, in steps (bf16.h). Built with it and used
 * where the processor and the kernel allow it (simd_dispatch.c); empty for other instruction sets.
 *
 * A tile is 16 rows of 64 bytes, and x and w in pairs are its layout already. A block of the result, up to 32 x 32,
 * is four tiles, which two of x and two of w add to: a load per multiplication, which takes twice as long as a load.
 * The last pairs of a part, fewer than 16, are copied and padded with zeros: tiles cannot be made smaller while
 * others hold sums.
 *
 * The configuration of tiles belongs to a thread, and the operating system saves 8 KB of tiles with a thread that uses
 * them: so a product configures them when it starts, and releases them when it ends.
 */
#if defined(LS_ISA_IS_avx512)
#include <immintrin.h>
#include <string.h>

#include "kernels/simd/bf16.h"

enum {
	TILE = LS_BF16_STEP, /* rows of a tile, and words of a row */
	BLOCK = 32,          /* rows and columns of a block */
	ROW_BYTES = 64       /* of a tile */
};

/* What the intrinsics read and write is not always declared to the compiler. */
#define MEMORY_IS_WRITTEN() __asm__ volatile("" ::: "memory")

/* Tiles of a block: its sums 0 to 3, two beside each other; 4 and 5 of x, upper and lower; 6 and 7 of w, left and
 * right. */
static void configure(int rows)
{
	const int upper = rows < TILE ? rows : TILE, lower = rows - upper;
	const int heights[8] = { upper, upper, lower, lower, upper, lower, TILE, TILE };
	struct {
		uint8_t palette, start, zeros[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} c = { .palette = 1 };

	for (int i = 0; i < 8; i++) { /* one of no rows is not used */
		c.rows[i] = (uint8_t)heights[i];
		c.bytes[i] = heights[i] > 0 ? ROW_BYTES : 0;
	}
	MEMORY_IS_WRITTEN();
	_tile_loadconfig(&c);
}

/* Sums += x (rows, 16 pairs) . w (16 pairs, cols); strides in bytes. */
LS_INLINE void step(const uint32_t *x, int64_t x_bytes, const uint32_t *w, int64_t w_bytes, int lower, int right)
{
	_tile_loadd(4, x, x_bytes);
	_tile_loadd(6, w, w_bytes);
	_tile_dpbf16ps(0, 4, 6);
	if (right) {
		_tile_loadd(7, w + TILE, w_bytes);
		_tile_dpbf16ps(1, 4, 7);
	}
	if (lower) {
		_tile_loadd(5, x + TILE * x_bytes / 4, x_bytes);
		_tile_dpbf16ps(2, 5, 6);
	}
	if (lower && right)
		_tile_dpbf16ps(3, 5, 7);
}

/* The same of `pairs` < 16. */
LS_INLINE void last_step(const uint32_t *x, int64_t ldx, const uint32_t *w, int64_t ldw, int pairs, int rows, int lower,
			 int right)
{
	_Alignas(64) uint32_t x_copy[BLOCK * TILE], w_copy[TILE * BLOCK];
	const __mmask16 mask = (__mmask16)((1u << pairs) - 1);
	for (int i = 0; i < rows; i++)
		_mm512_store_si512(x_copy + i * TILE, _mm512_maskz_loadu_epi32(mask, x + i * ldx));
	for (int k = 0; k < TILE; k++)
		for (int v = 0; v < 1 + right; v++)
			_mm512_store_si512(w_copy + k * BLOCK + v * TILE,
					   k < pairs ? _mm512_loadu_si512(w + k * ldw + v * TILE)
						     : _mm512_setzero_si512());
	MEMORY_IS_WRITTEN();
	step(x_copy, TILE * 4, w_copy, BLOCK * 4, lower, right);
	/* loads of tiles do not say that they read memory: the next part must not be copied before */
	MEMORY_IS_WRITTEN();
}

LS_INLINE void block(const product *p, int rows, int lower, int right)
{
	const int64_t y_bytes = p->ldy * 4;
	float *below = p->y + TILE * p->ldy;

	if (p->fresh) {
		_tile_zero(0);
		if (right)
			_tile_zero(1);
		if (lower)
			_tile_zero(2);
		if (lower && right)
			_tile_zero(3);
	} else {
		_tile_loadd(0, p->y, y_bytes);
		if (right)
			_tile_loadd(1, p->y + TILE, y_bytes);
		if (lower)
			_tile_loadd(2, below, y_bytes);
		if (lower && right)
			_tile_loadd(3, below + TILE, y_bytes);
	}
	for (const ls_bf16_part *part = p->parts, *end = part + p->count; part < end; part++) {
		const uint32_t *x = part->x + p->x, *w = part->w + p->w;
		int left = p->pairs;
		for (; left >= TILE; left -= TILE, x += TILE, w += TILE * p->ldw)
			step(x, p->ldx * 4, w, p->ldw * 4, lower, right);
		if (left > 0)
			last_step(x, p->ldx, w, p->ldw, left, rows, lower, right);
	}
	_tile_stored(0, p->y, y_bytes);
	if (right)
		_tile_stored(1, p->y + TILE, y_bytes);
	if (lower)
		_tile_stored(2, below, y_bytes);
	if (lower && right)
		_tile_stored(3, below + TILE, y_bytes);
}

/* All columns of a block of rows. */
static void strip(product p, int rows, int cols)
{
	for (int left = cols; left > 0; left -= BLOCK, p.w += BLOCK, p.y += BLOCK) {
		const int lower = rows > TILE, right = left > TILE;
		if (lower && right)
			block(&p, rows, 1, 1);
		else if (right)
			block(&p, rows, 0, 1);
		else
			block(&p, rows, lower, 0);
	}
}

static void gemm(const ls_bf16_shape *s, const ls_bf16_part *parts, int count, float *y)
{
	product p = { 0, 0, y, s->ldx, s->ldw, s->ldy, parts, count, s->pairs, !s->accumulate };
	for (int left = s->rows, before = 0; left > 0; left -= BLOCK) {
		const int rows = left < BLOCK ? left : BLOCK;
		if (rows != before)
			configure(rows);
		strip(p, rows, s->cols);
		before = rows;
		p.x += BLOCK * p.ldx;
		p.y += BLOCK * p.ldy;
	}
	_tile_release();
}

/* 16 x 16 words, rows to columns. */
static void turn(__m512i r[16], uint32_t *out, int64_t ld, int count)
{
	__m512i t[16];
	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
	}
	for (int i = 0; i < 16; i += 4)
		for (int j = 0; j < 2; j++) {
			r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
			r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
		}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++) {
			t[8 * j + i] = _mm512_shuffle_i32x4(r[8 * j + i], r[8 * j + i + 4], 0x88);
			t[8 * j + i + 4] = _mm512_shuffle_i32x4(r[8 * j + i], r[8 * j + i + 4], 0xdd);
		}
	const __mmask16 mask = (__mmask16)((1u << count) - 1);
	for (int i = 0; i < 8; i++) { /* column 4 * (quarter) + i % 4: t[i] has quarters 0 and 2 or 1 and 3 */
		const int quarter = i / 4, column = i % 4;
		_mm512_mask_storeu_epi32(out + (4 * quarter + column) * ld, mask,
					 _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
		_mm512_mask_storeu_epi32(out + (4 * (quarter + 2) + column) * ld, mask,
					 _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
	}
}

static void turned(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out, int64_t ld_out)
{
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
					       6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	for (int64_t r = 0; r < rows; r += 32)
		for (int c = 0; c < cols; c += 16) {
			const int64_t left = rows - r < 32 ? rows - r : 32;
			const float *from = x + r * ld + c;
			__m512i words[16];
			for (int i = 0; i < 16; i++) {
				const __m512 first =
					2 * i < left ? _mm512_loadu_ps(from + 2 * i * ld) : _mm512_setzero_ps();
				const __m512 second = 2 * i + 1 < left ? _mm512_loadu_ps(from + (2 * i + 1) * ld)
								       : _mm512_setzero_ps();
				words[i] = _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(second, first));
			}
			turn(words, out + c * ld_out + r / 2, ld_out, (int)(left + 1) / 2);
		}
}

const ls_bf16_kernels ls_bf16_amx = { gemm, ls_bf16_native_rows, ls_bf16_native_pairs, turned };
#endif
typedef int ls_bf16_amx_may_be_empty;
