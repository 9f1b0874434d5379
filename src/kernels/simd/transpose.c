/*
 * transpose.c - out (cols, rows) = in^T in tiles of 4 columns by LS_LANES rows (turn.h).
 */
#include "kernels/simd/parts.h"
#include "kernels/simd/turn.h"

void LS_ISA_SYMBOL(ls_simd_transpose)(const float *in, int rows, int cols, int ld_in, float *out, int ld_out)
{
	for (int r = 0; r < rows; r += LS_LANES)
		for (int c = 0; c < cols; c += 4) {
			ls_vf column[4];
			turn_tile(in + (int64_t)r * ld_in + c, ld_in, column);
			LS_UNROLL for (int j = 0; j < 4; j++)
				ls_vf_store(out + (int64_t)(c + j) * ld_out + r, column[j]);
		}
}
