/* pointwise.c - bias, rectifier, sums of rows and of arrays. All limited by memory: one pass, nothing kept. */
#include <stddef.h>

#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

/* One block of `vectors` vectors of channels, all rows. ld is the panel. */
LS_INLINE void bias_block(float *y, int64_t rows, int ld, const float *bias, int relu, int vectors)
{
	ls_vf b[4];
	LS_UNROLL for (int v = 0; v < vectors; v++) b[v] = bias ? ls_vf_load(bias + v * LS_LANES) : (ls_vf){ 0 };
	for (int64_t r = 0; r < rows; r++, y += ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			ls_vf t = ls_vf_load(y + v * LS_LANES);
			if (bias)
				t += b[v];
			ls_vf_store(y + v * LS_LANES, relu ? ls_vf_relu(t) : t);
		}
	}
}

LS_INLINE void bias_panel(float *y, int64_t rows, int panel, const float *bias, int relu)
{
	int c = 0;
	for (; c + 4 * LS_LANES <= panel; c += 4 * LS_LANES)
		bias_block(y + c, rows, panel, bias ? bias + c : NULL, relu, 4);
	for (; c < panel; c += LS_LANES)
		bias_block(y + c, rows, panel, bias ? bias + c : NULL, relu, 1);
}

void LS_ISA_SYMBOL(ls_simd_bias_act)(float *y, int64_t rows, int panel, const float *bias, int relu)
{
	if (bias && relu)
		bias_panel(y, rows, panel, bias, 1);
	else if (bias)
		bias_panel(y, rows, panel, bias, 0);
	else if (relu)
		bias_panel(y, rows, panel, NULL, 1);
}

void LS_ISA_SYMBOL(ls_simd_relu_backward)(const float *dy, const float *y, int64_t count, float *g)
{
	int64_t i = 0;
	for (; i + LS_LANES <= count; i += LS_LANES)
		ls_vf_store(g + i, ls_vf_where(ls_vf_load(y + i) > 0, ls_vf_load(dy + i)));
	for (; i < count; i++)
		g[i] = y[i] > 0 ? dy[i] : 0;
}

LS_INLINE void add_all(const float *a, const float *b, int64_t count, int relu, float *y)
{
	int64_t i = 0;
	for (; i + LS_LANES <= count; i += LS_LANES) {
		ls_vf t = ls_vf_load(a + i) + ls_vf_load(b + i);
		ls_vf_store(y + i, relu ? ls_vf_relu(t) : t);
	}
	for (; i < count; i++) {
		float t = a[i] + b[i];
		y[i] = relu && t < 0 ? 0 : t;
	}
}

void LS_ISA_SYMBOL(ls_simd_add)(const float *a, const float *b, int64_t count, int relu, float *y)
{
	if (relu)
		add_all(a, b, count, 1, y);
	else
		add_all(a, b, count, 0, y);
}

void LS_ISA_SYMBOL(ls_simd_accumulate)(float *y, const float *x, int64_t count)
{
	add_all(y, x, count, 0, y);
}

void LS_ISA_SYMBOL(ls_simd_multiply)(const float *a, const float *b, int64_t count, float *y)
{
	int64_t i = 0;
	for (; i + LS_LANES <= count; i += LS_LANES)
		ls_vf_store(y + i, ls_vf_load(a + i) * ls_vf_load(b + i));
	for (; i < count; i++)
		y[i] = a[i] * b[i];
}

/* Even and odd rows are summed apart, then together: twice the additions in flight. */
LS_INLINE void sums_block(const float *x, int64_t rows, int ld, float *sums, int vectors)
{
	ls_vf even[4] = { 0 }, odd[4] = { 0 };
	int64_t r = 0;
	for (; r + 2 <= rows; r += 2, x += 2 * ld) {
		LS_UNROLL for (int v = 0; v < vectors; v++)
		{
			even[v] += ls_vf_load(x + v * LS_LANES);
			odd[v] += ls_vf_load(x + ld + v * LS_LANES);
		}
	}
	LS_UNROLL for (int v = 0; v < vectors; v++)
	{
		if (r < rows)
			even[v] += ls_vf_load(x + v * LS_LANES);
		ls_vf_store(sums + v * LS_LANES, even[v] + odd[v]);
	}
}

void LS_ISA_SYMBOL(ls_simd_column_sums)(const float *x, int64_t rows, int panel, float *sums)
{
	int c = 0;
	for (; c + 4 * LS_LANES <= panel; c += 4 * LS_LANES)
		sums_block(x + c, rows, panel, sums + c, 4);
	for (; c < panel; c += LS_LANES)
		sums_block(x + c, rows, panel, sums + c, 1);
}
