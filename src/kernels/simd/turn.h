/*
 * turn.h - tiles of 4 columns by LS_LANES rows, turned in registers.
 *
 * A vector gathers four columns of LS_LANES/4 rows that are 4 apart, one row per 128-bit group: group L of vector i is
 * row 4L + i. Four such vectors transposed 4x4 inside every group are four whole columns. Only the 4x4 needs
 * shuffles; the gathering is done by loads.
 */
#ifndef LS_KERNELS_SIMD_TURN_H
#define LS_KERNELS_SIMD_TURN_H

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

/* out[j][r] = in[r*ld + j], j < 4, r < LS_LANES. */
LS_INLINE void turn_tile(const float *in, int64_t ld, ls_vf out[4])
{
	ls_vf a = gather_rows(in, ld), b = gather_rows(in + ld, ld);
	ls_vf c = gather_rows(in + 2 * ld, ld), d = gather_rows(in + 3 * ld, ld);
	ls_vf ab_low = __builtin_shufflevector(a, b, UNPACK_LOW), ab_high = __builtin_shufflevector(a, b, UNPACK_HIGH);
	ls_vf cd_low = __builtin_shufflevector(c, d, UNPACK_LOW), cd_high = __builtin_shufflevector(c, d, UNPACK_HIGH);
	out[0] = __builtin_shufflevector(ab_low, cd_low, PAIR_LOW);
	out[1] = __builtin_shufflevector(ab_low, cd_low, PAIR_HIGH);
	out[2] = __builtin_shufflevector(ab_high, cd_high, PAIR_LOW);
	out[3] = __builtin_shufflevector(ab_high, cd_high, PAIR_HIGH);
}

#endif
