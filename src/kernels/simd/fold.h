/*
 * fold.h - sums and maxima over a row of channels, in sixteen lanes whatever the vector width.
 *
 * Channel c is added to lane c % 16, channels in order; then lanes i and i + 8 are added, then i and i + 4, i and i +
 * 2, and the last two. So every instruction set adds the same numbers in the same order.
 */
#ifndef LS_KERNELS_SIMD_FOLD_H
#define LS_KERNELS_SIMD_FOLD_H

#include "kernels/simd/vec.h"

#define LS_FOLD 16                         /* lanes of a sum */
#define LS_FOLD_PARTS (LS_FOLD / LS_LANES) /* vectors that hold them */

typedef float ls_f4 __attribute__((vector_size(16)));

/* Lanes i, i + 4, i + 8 and i + 12 together. */
LS_INLINE ls_f4 ls_fold_to_4(const ls_vf *part)
{
#if LS_LANES == 4
	return (part[0] + part[2]) + (part[1] + part[3]);
#else
	typedef float f8 __attribute__((vector_size(32)));
#if LS_LANES == 8
	f8 half = part[0] + part[1];
#else
	f8 half = __builtin_shufflevector(part[0], part[0], 0, 1, 2, 3, 4, 5, 6, 7) +
		  __builtin_shufflevector(part[0], part[0], 8, 9, 10, 11, 12, 13, 14, 15);
#endif
	return __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
#endif
}

LS_INLINE float ls_fold_sum(const ls_vf *part)
{
	ls_f4 t = ls_fold_to_4(part);
	return (t[0] + t[2]) + (t[1] + t[3]);
}

/* The greatest of sixteen lanes, none of them a NaN. */
LS_INLINE float ls_fold_max(const ls_vf *part)
{
#if LS_LANES == 16
	return _mm512_reduce_max_ps((__m512)part[0]);
#else
	ls_vf most = part[0];
	LS_UNROLL for (int p = 1; p < LS_FOLD_PARTS; p++) most = ls_vf_max(most, part[p]);
	float maximum = most[0];
	LS_UNROLL for (int i = 1; i < LS_LANES; i++) maximum = most[i] > maximum ? most[i] : maximum;
	return maximum;
#endif
}

/* All ones in the lanes of vector `part` that are below `live`, of sixteen. */
LS_INLINE ls_vi ls_fold_live(int live, int part)
{
#if LS_LANES == 16
	const ls_vi lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#elif LS_LANES == 8
	const ls_vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
#else
	const ls_vi lane = { 0, 1, 2, 3 };
#endif
	return lane < live - part * LS_LANES;
}

#endif
