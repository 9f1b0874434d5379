/*
 * transpose.c - out (cols, rows) = in^T in tiles of 4 columns by LS_LANES rows.
 *
 * A vector gathers four columns of LS_LANES/4 rows that are 4 apart, one row per 128-bit group: group L of vector i is
 * row 4L + i. Four such vectors transposed 4x4 inside every group are four whole output rows. Only the 4x4 needs
 * shuffles; the gathering is done by loads.
 */
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

typedef float f4 __attribute__((vector_size(16)));
typedef float f4_any __attribute__((vector_size(16), aligned(4), may_alias));

LS_INLINE f4 load4(const float *p)
{
	return *(const f4_any *)p;
}

#if LS_LANES == 16
#define UNPACK_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define UNPACK_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define PAIR_LOW 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define PAIR_HIGH 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#elif LS_LANES == 8
#define UNPACK_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define UNPACK_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#define PAIR_LOW 0, 1, 8, 9, 4, 5, 12, 13
#define PAIR_HIGH 2, 3, 10, 11, 6, 7, 14, 15
#else
#define UNPACK_LOW 0, 4, 1, 5
#define UNPACK_HIGH 2, 6, 3, 7
#define PAIR_LOW 0, 1, 4, 5
#define PAIR_HIGH 2, 3, 6, 7
#endif

/* Four columns of rows 0, 4, 8, ... below `in`. */
LS_INLINE ls_vf gather_rows(const float *in, int64_t ld)
{
#if LS_LANES == 4
	(void)ld;
	return load4(in);
#else
	typedef float f8 __attribute__((vector_size(32)));
	f8 low = __builtin_shufflevector(load4(in), load4(in + 4 * ld), 0, 1, 2, 3, 4, 5, 6, 7);
#if LS_LANES == 8
	return low;
#else
	f8 high = __builtin_shufflevector(load4(in + 8 * ld), load4(in + 12 * ld), 0, 1, 2, 3, 4, 5, 6, 7);
	return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}

LS_INLINE void tile(const float *in, int64_t ld_in, float *out, int64_t ld_out)
{
	ls_vf a = gather_rows(in, ld_in), b = gather_rows(in + ld_in, ld_in);
	ls_vf c = gather_rows(in + 2 * ld_in, ld_in), d = gather_rows(in + 3 * ld_in, ld_in);
	ls_vf ab_low = __builtin_shufflevector(a, b, UNPACK_LOW), ab_high = __builtin_shufflevector(a, b, UNPACK_HIGH);
	ls_vf cd_low = __builtin_shufflevector(c, d, UNPACK_LOW), cd_high = __builtin_shufflevector(c, d, UNPACK_HIGH);
	ls_vf_store(out, __builtin_shufflevector(ab_low, cd_low, PAIR_LOW));
	ls_vf_store(out + ld_out, __builtin_shufflevector(ab_low, cd_low, PAIR_HIGH));
	ls_vf_store(out + 2 * ld_out, __builtin_shufflevector(ab_high, cd_high, PAIR_LOW));
	ls_vf_store(out + 3 * ld_out, __builtin_shufflevector(ab_high, cd_high, PAIR_HIGH));
}

void LS_ISA_SYMBOL(ls_simd_transpose)(const float *in, int rows, int cols, int ld_in, float *out, int ld_out)
{
	for (int r = 0; r < rows; r += LS_LANES)
		for (int c = 0; c < cols; c += 4)
			tile(in + (int64_t)r * ld_in + c, ld_in, out + (int64_t)c * ld_out + r, ld_out);
}
