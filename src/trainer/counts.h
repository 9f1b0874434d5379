/*
 * counts.h - whole numbers among the step statistics, which are summed as fp32 like the gradient they go with.
 *
 * A float holds whole numbers up to 2^24 exactly, and a step may have more tokens. So a count is LS_COUNT_DIGITS
 * floats, the digits of base 16 of what one micro-batch has. Each digit is summed for itself: the sum of a step is
 * exact up to 2^24 / 15, a million, micro-batches of less than 2^32 each, however the floats are added.
 */
#ifndef LS_TRAINER_COUNTS_H
#define LS_TRAINER_COUNTS_H

#include <assert.h>
#include <stdint.h>

enum { LS_COUNT_DIGITS = 8, LS_COUNT_BITS = 4 };

/* A micro-batch's count as digits (LS_COUNT_DIGITS), the lowest first. */
static inline void ls_count_put(float *digits, int64_t count)
{
	assert(count >= 0 && count >> (LS_COUNT_DIGITS * LS_COUNT_BITS) == 0);
	for (int i = 0; i < LS_COUNT_DIGITS; i++)
		digits[i] = (float)(count >> (i * LS_COUNT_BITS) & ((1 << LS_COUNT_BITS) - 1));
}

/* The count that sums of digits stand for. */
static inline int64_t ls_count_get(const float *digits)
{
	int64_t count = 0;
	for (int i = LS_COUNT_DIGITS - 1; i >= 0; i--)
		count = count * (1 << LS_COUNT_BITS) + (int64_t)digits[i];
	return count;
}

#endif
