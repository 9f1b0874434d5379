/*
 * dropout.c - Philox4x32-10 in lanes, and the mask it draws.
 *
 * Sixteen blocks (64 words) go through the ten rounds side by side: the loops below have a fixed length and no
 * branches, which compilers turn into vector code. The words are those of ls_rng_words(), whoever computes them.
 */
#include "base/rng.h"
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

#define BLOCKS 16

/* The words of blocks first .. first + BLOCKS-1 of counter `high`, in element order. */
static void draw(uint32_t key0, uint32_t key1, uint64_t high, uint64_t first, uint32_t words[4 * BLOCKS])
{
	uint32_t a[BLOCKS], b[BLOCKS], c[BLOCKS], d[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t low = first + (uint64_t)i;
		a[i] = (uint32_t)low;
		b[i] = (uint32_t)(low >> 32);
		c[i] = (uint32_t)high;
		d[i] = (uint32_t)(high >> 32);
	}
	for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
		for (int i = 0; i < BLOCKS; i++) {
			uint64_t p = 0xD2511F53ull * a[i], q = 0xCD9E8D57ull * c[i];
			a[i] = (uint32_t)(q >> 32) ^ b[i] ^ key0;
			b[i] = (uint32_t)q;
			c[i] = (uint32_t)(p >> 32) ^ d[i] ^ key1;
			d[i] = (uint32_t)p;
		}
	}
	for (int i = 0; i < BLOCKS; i++) {
		words[4 * i] = a[i];
		words[4 * i + 1] = b[i];
		words[4 * i + 2] = c[i];
		words[4 * i + 3] = d[i];
	}
}

void LS_ISA_SYMBOL(ls_simd_dropout)(const float *x, int panel, uint32_t key0, uint32_t key1, uint64_t sample,
				    uint64_t first_element, float probability, float *y)
{
	const float kept = 1.0f - probability;
	uint32_t words[4 * BLOCKS];
	for (int done = 0; done < panel;) {
		uint64_t element = first_element + (uint64_t)done;
		int skip = (int)(element % 4), count = 4 * BLOCKS - skip;
		if (count > panel - done)
			count = panel - done;
		draw(key0, key1, sample, element / 4, words);
		for (int i = 0; i < count; i++)
			y[done + i] = ls_rng_unit(words[skip + i]) >= probability ? x[done + i] / kept : 0;
		done += count;
	}
}
