/*
 * bf16.h - the arithmetic of products in bf16, as every instruction set computes it.
 *
 * A bf16 is the upper half of a float. Two neighbours along the inner dimension are a pair: a word whose lower half is
 * the first. Per pair the sum of an element gets two fused multiply-adds in fp32, of the upper halves, then of the
 * lower: what AVX512-BF16's instruction does. It takes subnormal numbers for zeros and returns none: a result whose
 * size, rounded as if exponents had no limit, is below 2^-126 is a zero of its sign. Rounding is to nearest, ties to
 * even.
 *
 * bf16-amx is another arithmetic, that of AMX's instruction: the pairs of a part are cut into steps of 16, counted from
 * its first. A step has two sums, of the lower and of the upper halves, each from zero with a fused multiply-add per
 * pair; then they are added to each other, and that to the element's sum. A last step of fewer pairs is filled with
 * zeros. Subnormal numbers and rounding are as above.
 */
#ifndef LS_KERNELS_SIMD_BF16_H
#define LS_KERNELS_SIMD_BF16_H

#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

typedef struct product {
	int64_t x, w; /* words of each part that lie before this tile's */
	float *y;
	int64_t ldx, ldw, ldy;
	const ls_bf16_part *parts;
	int count, pairs;
	int fresh; /* start from zero, not from y */
} product;

#endif
