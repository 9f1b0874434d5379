/*
 * rng.c - Philox4x32-10, its key, and the cutting of ranges into tiles.
 */
#include "base/rng.h"

#include <string.h>

#include "base/rng_kernels.h"

ls_rng ls_rng_make(uint64_t seed, ls_rng_purpose purpose, uint64_t stream)
{
	uint64_t key = ls_mix64(ls_mix64(ls_mix64(seed) + (uint64_t)purpose) + stream);
	return (ls_rng){ { (uint32_t)key, (uint32_t)(key >> 32) } };
}

void ls_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
		c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)b;
		c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)a;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

void ls_rng_words(ls_rng rng, uint64_t high, uint64_t low, uint32_t words[4])
{
	uint32_t counter[4] = { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) };
	ls_philox4x32(counter, rng.key, words);
}

static const ls_rng_kernels *const tables[LS_ISA_COUNT] = LS_ISA_TABLES(ls_rng_kernels);

/* What a tile is filled with: uniform in [low, bound), or normal of mean 0 when `normal`. */
typedef struct fill {
	ls_rng rng;
	uint64_t high;
	float low, bound, deviation;
	int normal;
} fill;

static void fill_tile(const ls_rng_kernels *use, const fill *how, uint64_t block, float *out)
{
	if (how->normal)
		use->normal(how->rng, how->high, block, how->deviation, out);
	else
		use->uniform(how->rng, how->high, block, how->low, how->bound, out);
}

/* Tiles start at the block of the first element wanted; the ends go through a tile of scratch. */
static void fill_range(const fill *how, uint64_t first, size_t count, float *out)
{
	enum { ELEMENTS = 4 * LS_RNG_TILE };
	const ls_rng_kernels *use = tables[ls_isa_get()];
	float scratch[ELEMENTS];
	while (count) {
		size_t skip = first % 4, take = ELEMENTS - skip < count ? ELEMENTS - skip : count;
		if (take == ELEMENTS) {
			fill_tile(use, how, first / 4, out);
		} else {
			fill_tile(use, how, first / 4, scratch);
			memcpy(out, scratch + skip, take * sizeof(*out));
		}
		out += take;
		first += take;
		count -= take;
	}
}

void ls_rng_fill_uniform(ls_rng rng, uint64_t high, uint64_t first, size_t count, float low, float bound, float *out)
{
	fill how = { .rng = rng, .high = high, .low = low, .bound = bound };
	fill_range(&how, first, count, out);
}

void ls_rng_fill_normal(ls_rng rng, uint64_t high, uint64_t first, size_t count, float deviation, float *out)
{
	fill how = { .rng = rng, .high = high, .deviation = deviation, .normal = 1 };
	fill_range(&how, first, count, out);
}

uint64_t ls_mix64(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

uint64_t ls_hash_text(const char *text)
{
	uint64_t hash = 0xCBF29CE484222325; /* FNV-1a, then mixed, for its high bits are weak on short names */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001B3;
	return ls_mix64(hash);
}
