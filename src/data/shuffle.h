/*
 * shuffle.h - the order of an epoch: a permutation of [0, n) keyed by (seed, epoch), computed one element at a time.
 */
#ifndef LS_DATA_SHUFFLE_H
#define LS_DATA_SHUFFLE_H

#include <stdint.h>

#define LS_PERMUTE_ROUNDS 6

typedef struct ls_permutation {
	uint64_t n;
	int half_bits; /* the cipher works on 2 * half_bits bits */
	uint64_t keys[LS_PERMUTE_ROUNDS];
} ls_permutation;

ls_permutation ls_permutation_make(uint64_t seed, uint64_t epoch, uint64_t n);
uint64_t ls_permutation_at(const ls_permutation *permutation, uint64_t i); /* i < n */

/* The same for a single element, without keeping the permutation. */
uint64_t ls_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#endif
