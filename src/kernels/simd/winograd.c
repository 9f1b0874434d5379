/*
 * winograd.c - the transforms of Winograd's F(2x2, 3x3), one column at a time (kernels/winograd.h has the formulas).
 *
 * Lanes are channels and nothing is fused: additions, subtractions and halvings, so every instruction set gives the
 * same bits.
 */
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

void LS_ISA_SYMBOL(ls_simd_winograd_input)(const float *const d[4][2], int add, int64_t count, float *v, int64_t plane)
{
	for (int64_t c = 0; c < count; c += LS_LANES) {
		ls_vf e[4];
		LS_UNROLL for (int r = 0; r < 4; r++)
		{
			ls_vf a = ls_vf_load(d[r][0] + c), b = ls_vf_load(d[r][1] + c);
			e[r] = add ? a + b : a - b;
		}
		ls_vf_store(v + c, e[0] - e[2]);
		ls_vf_store(v + plane + c, e[1] + e[2]);
		ls_vf_store(v + 2 * plane + c, e[2] - e[1]);
		ls_vf_store(v + 3 * plane + c, e[1] - e[3]);
	}
}

LS_INLINE void put(float *y, ls_winograd_put how, ls_vf z)
{
	if (how == LS_WINOGRAD_SET)
		ls_vf_store(y, z);
	else if (how == LS_WINOGRAD_ADD)
		ls_vf_store(y, ls_vf_load(y) + z);
	else if (how == LS_WINOGRAD_SUBTRACT)
		ls_vf_store(y, ls_vf_load(y) - z);
}

void LS_ISA_SYMBOL(ls_simd_winograd_output)(const float *m, int64_t plane, int rows, int64_t count,
					    const ls_winograd_put how[2], float *const y[2][2])
{
	const ls_winograd_put how0 = how[0], how1 = how[1];
	float *const y00 = y[0][0], *const y01 = y[0][1], *const y10 = y[1][0], *const y11 = y[1][1];

	for (int64_t c = 0; c < count; c += LS_LANES) {
		ls_vf m1 = ls_vf_load(m + plane + c), m2 = ls_vf_load(m + 2 * plane + c);
		ls_vf z = ls_vf_load(m + c) + m1 + m2;
		put(y00 + c, how0, z);
		put(y01 + c, how1, z);
		if (rows == 1)
			continue;
		z = m1 - m2 - ls_vf_load(m + 3 * plane + c);
		put(y10 + c, how0, z);
		put(y11 + c, how1, z);
	}
}

void LS_ISA_SYMBOL(ls_simd_winograd_gradient)(const float *const dy[2][2], int column, int64_t count, float *w,
					      int64_t plane)
{
	for (int64_t c = 0; c < count; c += LS_LANES) {
		ls_vf f[2];
		LS_UNROLL for (int r = 0; r < 2; r++)
		{
			ls_vf a = ls_vf_load(dy[r][0] + c), b = ls_vf_load(dy[r][1] + c);
			f[r] = column == 0 ? a : column == 1 ? a + b : column == 2 ? a - b : -b;
		}
		ls_vf_store(w + c, f[0]);
		ls_vf_store(w + plane + c, f[0] + f[1]);
		ls_vf_store(w + 2 * plane + c, f[0] - f[1]);
		ls_vf_store(w + 3 * plane + c, -f[1]);
	}
}

/* G times three numbers. */
LS_INLINE void spread(ls_vf a, ls_vf b, ls_vf c, ls_vf out[4])
{
	ls_vf half = ls_vf_set(0.5f), sum = a + c;
	out[0] = a;
	out[1] = half * (sum + b);
	out[2] = half * (sum - b);
	out[3] = c;
}

void LS_ISA_SYMBOL(ls_simd_winograd_weights)(const float *const g[9], int64_t count, float *const u[16])
{
	for (int64_t c = 0; c < count; c += LS_LANES) {
		ls_vf t[3][4], row[4];
		LS_UNROLL for (int k = 0; k < 3; k++)
		{
			spread(ls_vf_load(g[k] + c), ls_vf_load(g[3 + k] + c), ls_vf_load(g[6 + k] + c), t[k]);
		}
		LS_UNROLL for (int i = 0; i < 4; i++)
		{
			spread(t[0][i], t[1][i], t[2][i], row);
			LS_UNROLL for (int j = 0; j < 4; j++) ls_vf_store(u[4 * i + j] + c, row[j]);
		}
	}
}

/* G^T times four numbers. */
LS_INLINE void gather(const ls_vf u[4], ls_vf out[3])
{
	ls_vf half = ls_vf_set(0.5f), sum = half * (u[1] + u[2]);
	out[0] = u[0] + sum;
	out[1] = half * (u[1] - u[2]);
	out[2] = sum + u[3];
}

void LS_ISA_SYMBOL(ls_simd_winograd_weights_backward)(const float *const u[16], int64_t count, int accumulate,
						      float *const dg[9])
{
	for (int64_t c = 0; c < count; c += LS_LANES) {
		ls_vf t[3][4], in[4], out[3];
		LS_UNROLL for (int j = 0; j < 4; j++)
		{
			LS_UNROLL for (int i = 0; i < 4; i++) in[i] = ls_vf_load(u[4 * i + j] + c);
			gather(in, out);
			LS_UNROLL for (int k = 0; k < 3; k++) t[k][j] = out[k];
		}
		LS_UNROLL for (int k = 0; k < 3; k++)
		{
			gather(t[k], out);
			LS_UNROLL for (int l = 0; l < 3; l++)
			{
				float *to = dg[3 * k + l] + c;
				ls_vf_store(to, accumulate ? ls_vf_load(to) + out[l] : out[l]);
			}
		}
	}
}
