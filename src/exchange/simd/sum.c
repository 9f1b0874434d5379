/*
 * sum.c - additions of long vectors. The processor's own prefetching stops at the end of a page; asking for lines half
 * a page ahead carries over it, and gained a tenth where two threads add the gradients of two devices.
 */
#include "base/isa.h"
#include "exchange/simd.h"

enum { LINE = 16, AHEAD = 512 };

static void add(float *left, const float *right, size_t count)
{
	size_t i = 0;
	for (; i + LINE <= count; i += LINE) {
		__builtin_prefetch(left + i + AHEAD, 1);
		__builtin_prefetch(right + i + AHEAD);
		for (size_t k = i; k < i + LINE; k++)
			left[k] += right[k];
	}
	for (; i < count; i++)
		left[i] += right[i];
}

static void sum(float *restrict out, const float *a, const float *b, size_t count)
{
	size_t i = 0;
	for (; i + LINE <= count; i += LINE) {
		__builtin_prefetch(a + i + AHEAD);
		__builtin_prefetch(b + i + AHEAD);
		for (size_t k = i; k < i + LINE; k++)
			out[k] = a[k] + b[k];
	}
	for (; i < count; i++)
		out[i] = a[i] + b[i];
}

const ls_exchange_simd LS_ISA_SYMBOL(ls_exchange_simd) = { add, sum };
