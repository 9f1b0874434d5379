/*
 * simd.h - sums of gradients, one table of functions per instruction set (see base/isa.h).
 *
 * Every loop is element-wise: all tables give the same bits, and so does any split of a range. They are bound by
 * memory, and long enough to be worth prefetching.
 */
#ifndef LS_EXCHANGE_SIMD_H
#define LS_EXCHANGE_SIMD_H

#include <stddef.h>

typedef struct ls_exchange_simd {
	void (*add)(float *left, const float *right, size_t count); /* left += right */
	void (*sum)(float *restrict out, const float *a, const float *b, size_t count);
} ls_exchange_simd;

/* The table of the instruction set in use; and of a given ls_isa (tests), NULL when this build lacks it. */
const ls_exchange_simd *ls_exchange_simd_get(void);
const ls_exchange_simd *ls_exchange_simd_of(int isa);

#endif
