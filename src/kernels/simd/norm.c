/*
 * norm.c - the passes of batch normalisation over panels.
 *
 * A pass is cut into blocks of four vectors of channels whose parameters and sums stay at hand while all rows go by (in
 * registers, where there are enough; narrower blocks would fit AVX2's sixteen, but measure slower: they read scattered
 * lines). Sums over rows keep even and odd rows apart and add the two at the end: per channel that order depends on the
 * number of rows alone, so every instruction set gives the same bits.
 */
#include <stddef.h>

#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

/*
 * Two passes: mean = x_0 + sum (x - x_0) / n, then m2 = sum (x - mean)^2. The shift by the first row keeps a large
 * common offset out of the sum; the second pass finds the chunk in cache.
 */
LS_INLINE void moments_block(const float *x, int64_t rows, int ld, float *mean, float *m2, int vectors)
{
	ls_vf first[4], even[4], odd[4];
	const float *row = x;
	int64_t r = 0;
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		first[v] = ls_vf_load(x + v * LS_LANES);
		even[v] = odd[v] = (ls_vf){ 0 };
	}
	for (; r + 2 <= rows; r += 2, row += 2 * ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			even[v] += ls_vf_load(row + v * LS_LANES) - first[v];
			odd[v] += ls_vf_load(row + ld + v * LS_LANES) - first[v];
		}
	}
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		if (r < rows)
			even[v] += ls_vf_load(row + v * LS_LANES) - first[v];
		first[v] += (even[v] + odd[v]) / (float)rows;
		ls_vf_store(mean + v * LS_LANES, first[v]);
		even[v] = odd[v] = (ls_vf){ 0 };
	}
	for (r = 0, row = x; r + 2 <= rows; r += 2, row += 2 * ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			ls_vf s = ls_vf_load(row + v * LS_LANES) - first[v];
			ls_vf t = ls_vf_load(row + ld + v * LS_LANES) - first[v];
			even[v] += s * s;
			odd[v] += t * t;
		}
	}
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		ls_vf s = r < rows ? ls_vf_load(row + v * LS_LANES) - first[v] : (ls_vf){ 0 };
		ls_vf_store(m2 + v * LS_LANES, (even[v] + s * s) + odd[v]);
	}
}

void LS_ISA_SYMBOL(ls_simd_moments)(const float *x, int64_t rows, int panel, float *mean, float *m2)
{
	int c = 0;
	for (; c + 4 * LS_LANES <= panel; c += 4 * LS_LANES)
		moments_block(x + c, rows, panel, mean + c, m2 + c, 4);
	for (; c < panel; c += LS_LANES)
		moments_block(x + c, rows, panel, mean + c, m2 + c, 1);
}

LS_INLINE void normalize_block(const float *x, const float *residual, int64_t rows, int ld, const float *scale,
			       const float *shift, int relu, float *y, int vectors)
{
	ls_vf a[4], b[4];
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		a[v] = ls_vf_load(scale + v * LS_LANES);
		b[v] = ls_vf_load(shift + v * LS_LANES);
	}
	for (int64_t at = 0; at < rows * ld; at += ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			ls_vf t = ls_vf_load(x + at + v * LS_LANES) * a[v] + b[v];
			if (residual)
				t += ls_vf_load(residual + at + v * LS_LANES);
			ls_vf_store(y + at + v * LS_LANES, relu ? ls_vf_relu(t) : t);
		}
	}
}

LS_INLINE void normalize_panel(const float *x, const float *residual, int64_t rows, int panel, const float *scale,
			       const float *shift, int relu, float *y)
{
	int c = 0;
	for (; c + 4 * LS_LANES <= panel; c += 4 * LS_LANES)
		normalize_block(x + c, residual ? residual + c : NULL, rows, panel, scale + c, shift + c, relu, y + c,
				4);
	for (; c < panel; c += LS_LANES)
		normalize_block(x + c, residual ? residual + c : NULL, rows, panel, scale + c, shift + c, relu, y + c,
				1);
}

void LS_ISA_SYMBOL(ls_simd_normalize)(const float *x, const float *residual, int64_t rows, int panel,
				      const float *scale, const float *shift, int relu, float *y)
{
	if (residual && relu)
		normalize_panel(x, residual, rows, panel, scale, shift, 1, y);
	else if (residual)
		normalize_panel(x, residual, rows, panel, scale, shift, 0, y);
	else if (relu)
		normalize_panel(x, NULL, rows, panel, scale, shift, 1, y);
	else
		normalize_panel(x, NULL, rows, panel, scale, shift, 0, y);
}

/* How a mask is looked up, known when a loop is compiled. */
enum { MASK_NONE, MASK_OUTPUT, MASK_INPUT };

/* The mask of a block of channels: y, or the coefficients to compute it from x. */
typedef struct block_mask {
	const float *y;
	ls_vf scale[4], shift[4];
} block_mask;

LS_INLINE void mask_load(block_mask *m, ls_norm_mask mask, int kind, int channel, int vectors)
{
	m->y = kind == MASK_OUTPUT ? mask.y + channel : NULL;
	LS_UNROLL for (int v = 0; kind == MASK_INPUT && v < vectors; v++)
	{
		m->scale[v] = ls_vf_load(mask.scale + channel + v * LS_LANES);
		m->shift[v] = ls_vf_load(mask.shift + channel + v * LS_LANES);
	}
}

/* dy where the rectifier let it through. The input's form computes what normalize() did, to the bit. */
LS_INLINE ls_vf gradient(ls_vf dy, ls_vf x, const block_mask *m, int kind, int64_t at, int v)
{
	if (kind == MASK_OUTPUT)
		return ls_vf_where(ls_vf_load(m->y + at) > 0, dy);
	if (kind == MASK_INPUT)
		return ls_vf_where(x * m->scale[v] + m->shift[v] > 0, dy);
	return dy;
}

/* One row's share of sum g and sum g*(x - mean); stores g. */
LS_INLINE void sums_row(const float *dy, const block_mask *m, int kind, const float *x, int64_t at, float *g,
			const ls_vf *mean, ls_vf *sum_g, ls_vf *sum_gx, int vectors)
{
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		int64_t here = at + v * LS_LANES;
		ls_vf in = ls_vf_load(x + here), t = gradient(ls_vf_load(dy + here), in, m, kind, here, v);
		if (g)
			ls_vf_store(g + here, t);
		sum_g[v] += t;
		sum_gx[v] += t * (in - mean[v]);
	}
}

LS_INLINE void sums_block(const float *dy, const block_mask *mask, int kind, const float *x, int64_t rows, int ld,
			  const float *mean, float *g, float *sum_g, float *sum_gx, int vectors)
{
	ls_vf m[4], even_g[4], odd_g[4], even_gx[4], odd_gx[4];
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		m[v] = ls_vf_load(mean + v * LS_LANES);
		even_g[v] = odd_g[v] = even_gx[v] = odd_gx[v] = (ls_vf){ 0 };
	}
	int64_t r = 0;
	for (; r + 2 <= rows; r += 2) {
		sums_row(dy, mask, kind, x, r * ld, g, m, even_g, even_gx, vectors);
		sums_row(dy, mask, kind, x, (r + 1) * ld, g, m, odd_g, odd_gx, vectors);
	}
	if (r < rows)
		sums_row(dy, mask, kind, x, r * ld, g, m, even_g, even_gx, vectors);
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		ls_vf_store(sum_g + v * LS_LANES, even_g[v] + odd_g[v]);
		ls_vf_store(sum_gx + v * LS_LANES, even_gx[v] + odd_gx[v]);
	}
}

LS_INLINE void sums_panel(const float *dy, ls_norm_mask mask, int kind, const float *x, int64_t rows, int panel,
			  const float *mean, float *g, float *sum_g, float *sum_gx)
{
	block_mask m;
	int c = 0;
	for (; c + 4 * LS_LANES <= panel; c += 4 * LS_LANES) {
		mask_load(&m, mask, kind, c, 4);
		sums_block(dy + c, &m, kind, x + c, rows, panel, mean + c, g ? g + c : NULL, sum_g + c, sum_gx + c, 4);
	}
	for (; c < panel; c += LS_LANES) {
		mask_load(&m, mask, kind, c, 1);
		sums_block(dy + c, &m, kind, x + c, rows, panel, mean + c, g ? g + c : NULL, sum_g + c, sum_gx + c, 1);
	}
}

void LS_ISA_SYMBOL(ls_simd_normalize_sums)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
					   const float *mean, float *g, float *sum_g, float *sum_gx)
{
	if (mask.y && g)
		sums_panel(dy, mask, MASK_OUTPUT, x, rows, panel, mean, g, sum_g, sum_gx);
	else if (mask.y)
		sums_panel(dy, mask, MASK_OUTPUT, x, rows, panel, mean, NULL, sum_g, sum_gx);
	else if (mask.scale && g)
		sums_panel(dy, mask, MASK_INPUT, x, rows, panel, mean, g, sum_g, sum_gx);
	else if (mask.scale)
		sums_panel(dy, mask, MASK_INPUT, x, rows, panel, mean, NULL, sum_g, sum_gx);
	else if (g)
		sums_panel(dy, mask, MASK_NONE, x, rows, panel, mean, g, sum_g, sum_gx);
	else
		sums_panel(dy, mask, MASK_NONE, x, rows, panel, mean, NULL, sum_g, sum_gx);
}

LS_INLINE void input_block(const float *dy, const block_mask *mask, int kind, const float *x, int64_t rows, int ld,
			   const float *a, const float *b, const float *c, float *dx, int vectors)
{
	ls_vf p[4], q[4], s[4];
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		p[v] = ls_vf_load(a + v * LS_LANES);
		q[v] = ls_vf_load(b + v * LS_LANES);
		s[v] = ls_vf_load(c + v * LS_LANES);
	}
	for (int64_t at = 0; at < rows * ld; at += ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			int64_t here = at + v * LS_LANES;
			ls_vf in = ls_vf_load(x + here);
			ls_vf t = p[v] * gradient(ls_vf_load(dy + here), in, mask, kind, here, v);
			t += q[v] * in;
			ls_vf_store(dx + here, t + s[v]);
		}
	}
}

LS_INLINE void input_panel(const float *dy, ls_norm_mask mask, int kind, const float *x, int64_t rows, int panel,
			   const float *a, const float *b, const float *c, float *dx)
{
	block_mask m;
	int k = 0;
	for (; k + 4 * LS_LANES <= panel; k += 4 * LS_LANES) {
		mask_load(&m, mask, kind, k, 4);
		input_block(dy + k, &m, kind, x + k, rows, panel, a + k, b + k, c + k, dx + k, 4);
	}
	for (; k < panel; k += LS_LANES) {
		mask_load(&m, mask, kind, k, 1);
		input_block(dy + k, &m, kind, x + k, rows, panel, a + k, b + k, c + k, dx + k, 1);
	}
}

void LS_ISA_SYMBOL(ls_simd_normalize_input)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
					    const float *a, const float *b, const float *c, float *dx)
{
	if (mask.y)
		input_panel(dy, mask, MASK_OUTPUT, x, rows, panel, a, b, c, dx);
	else if (mask.scale)
		input_panel(dy, mask, MASK_INPUT, x, rows, panel, a, b, c, dx);
	else
		input_panel(dy, mask, MASK_NONE, x, rows, panel, a, b, c, dx);
}
