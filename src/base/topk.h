/*
 * topk.h - the k largest of some values.
 */
#ifndef LS_BASE_TOPK_H
#define LS_BASE_TOPK_H

#include <stdint.h>
#include <string.h>

/* Indices of the k largest of `count` values into best[k], k <= count: the largest first, of equal ones the smaller
 * index. */
static inline void ls_topk(const float *values, int64_t count, int64_t k, int64_t *best)
{
	int64_t found = 0;

	for (int64_t i = 0; i < count; i++) {
		int64_t at = found;
		while (at > 0 && values[i] > values[best[at - 1]])
			at--;
		if (at == k)
			continue;
		found += found < k;
		memmove(best + at + 1, best + at, (size_t)(found - 1 - at) * sizeof(*best));
		best[at] = i;
	}
}

#endif
