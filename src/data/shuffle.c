/*
 * shuffle.c - shuffling without a table.
 *
 * A balanced Feistel network with any round function is a bijection of [0, 4^k). With the smallest such domain that
 * holds n, and walking (encrypting again while the result is >= n), it is one of [0, n): following the cycle of the
 * larger permutation from a point below n always comes back below n, and distinct points come back to distinct ones.
 * The domain is less than 4n, so an element costs fewer than 4 passes on average; memory is six keys. A network of very
 * few bits does not reach all orders equally often, so the domain has at least 64 elements.
 */
#include "data/shuffle.h"

#include "base/rng.h"

#define HALF_BITS_MIN 3

ls_permutation ls_permutation_make(uint64_t seed, uint64_t epoch, uint64_t n)
{
	ls_permutation permutation = { .n = n, .half_bits = HALF_BITS_MIN };
	while (permutation.half_bits < 32 && (uint64_t)1 << (2 * permutation.half_bits) < n)
		permutation.half_bits++;
	ls_rng rng = ls_rng_make(seed, LS_RNG_SHUFFLE, epoch);
	for (int round = 0; round < LS_PERMUTE_ROUNDS; round += 2) {
		uint32_t words[4];
		ls_rng_words(rng, 0, (uint64_t)round, words);
		permutation.keys[round] = (uint64_t)words[0] << 32 | words[1];
		permutation.keys[round + 1] = (uint64_t)words[2] << 32 | words[3];
	}
	return permutation;
}

/* (left, right) -> (right, left ^ F(right)), F the top bits of a 64-bit mixer. */
static uint64_t encrypt(const ls_permutation *permutation, uint64_t x)
{
	int bits = permutation->half_bits;
	uint64_t mask = ((uint64_t)1 << bits) - 1;
	uint64_t left = x >> bits, right = x & mask;
	for (int round = 0; round < LS_PERMUTE_ROUNDS; round++) {
		uint64_t next = left ^ (ls_mix64(right ^ permutation->keys[round]) >> (64 - bits));
		left = right;
		right = next;
	}
	return left << bits | right;
}

uint64_t ls_permutation_at(const ls_permutation *permutation, uint64_t i)
{
	uint64_t x = i;
	do
		x = encrypt(permutation, x);
	while (x >= permutation->n);
	return x;
}

uint64_t ls_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
	ls_permutation permutation = ls_permutation_make(seed, epoch, n);
	return ls_permutation_at(&permutation, i);
}
