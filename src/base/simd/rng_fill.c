/*
 * rng_fill.c - tiles of uniform and normal numbers, written for the compiler to vectorise across blocks.
 *
 * Logarithm, sine and cosine are polynomials in plain float operations, without fused multiply-add: the same bits on
 * every processor and with every C library. Each is within 2e-7 of the true value on the range it is used for.
 */
#include <math.h>
#include <string.h>

#include "base/rng_kernels.h"

enum { TILE = LS_RNG_TILE };

typedef struct tile {
	uint32_t word[4][TILE]; /* word j of block i at [j][i] */
} tile;

/* Ten rounds, unrolled so that a vector of blocks stays in registers from the counter to the words. */
static inline void draw(tile *t, ls_rng rng, uint64_t high, uint64_t block)
{
	uint32_t high0 = (uint32_t)high, high1 = (uint32_t)(high >> 32), k0 = rng.key[0], k1 = rng.key[1];
	for (uint32_t i = 0; i < TILE; i++) {
		uint32_t low0 = (uint32_t)block + i, carry = low0 < i;
		uint32_t c0 = low0, c1 = (uint32_t)(block >> 32) + carry, c2 = high0, c3 = high1;
#pragma GCC unroll 10
		for (uint32_t round = 0; round < 10; round++) {
			uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
			c0 = (uint32_t)(b >> 32) ^ c1 ^ (k0 + round * 0x9E3779B9);
			c1 = (uint32_t)b;
			c2 = (uint32_t)(a >> 32) ^ c3 ^ (k1 + round * 0xBB67AE85);
			c3 = (uint32_t)a;
		}
		t->word[0][i] = c0, t->word[1][i] = c1, t->word[2][i] = c2, t->word[3][i] = c3;
	}
}

/* (word + 1/2) / 2^32, in halves that convert exactly. */
static inline float fraction(uint32_t word)
{
	return ((float)(int32_t)(word >> 16) * 65536.0f + ((float)(int32_t)(word & 0xFFFF) + 0.5f)) * 0x1p-32f;
}

/*
 * ln of fraction(word): x = m 2^e with m in [0.707, 1.414], ln m = 2 atanh(s), s = (m - 1) / (m + 1). Near one a float
 * has lost x - 1, but the complement of the word still has it: fraction(~word) is 1 - x.
 */
static inline float log_fraction(uint32_t word)
{
	float x = fraction(word), rest = fraction(~word);
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	int32_t exponent = (int32_t)(bits - 0x3F3504F3) >> 23;
	bits -= (uint32_t)exponent << 23;
	float m;
	memcpy(&m, &bits, sizeof(m));
	float above = x > 0.75f ? -rest : m - 1.0f;
	float s = above / (2.0f + above), z = s * s;
	float series = z * (0.333333333f + z * (0.2f + z * (0.142857143f + z * 0.111111111f)));
	return (float)exponent * 0.693147181f + 2.0f * (s + s * series);
}

/* sin x and cos x for |x| <= pi/4, by Taylor's series to x^9 and x^10. */
static inline float sine(float x)
{
	float z = x * x;
	return x + x * z * (-1.66666667e-1f + z * (8.33333333e-3f + z * (-1.98412698e-4f + z * 2.75573192e-6f)));
}

static inline float cosine(float x)
{
	float z = x * x;
	float tail = 4.16666667e-2f + z * (-1.38888889e-3f + z * (2.48015873e-5f - z * 2.75573192e-7f));
	return 1.0f - 0.5f * z + z * z * tail;
}

/*
 * Box-Muller on words (a, b): radius sqrt(-2 ln u), u = (a + 1/2) / 2^32, at the angle of b / 2^32 turns. The angle's
 * nearest quarter turn q is exact integer arithmetic; the rest is within an eighth of a turn either way.
 */
static inline void box_muller(const uint32_t *a, const uint32_t *b, float deviation, float *out_cos, float *out_sin)
{
	for (int i = 0; i < TILE; i++) {
		float radius = deviation * sqrtf(-2.0f * log_fraction(a[i]));
		uint32_t q = (b[i] + 0x20000000) >> 30;
		float x = (float)(int32_t)(b[i] - (q << 30)) * 1.46291808e-9f; /* 2 pi / 2^32 */
		float s = sine(x), c = cosine(x);
		float along = q & 1 ? s : c, across = q & 1 ? c : s;
		out_cos[i] = radius * ((q + 1) & 2 ? -along : along);
		out_sin[i] = radius * (q & 2 ? -across : across);
	}
}

static inline void interleave(float (*from)[TILE], float *out)
{
	for (int i = 0; i < TILE; i++)
		for (int j = 0; j < 4; j++)
			out[4 * i + j] = from[j][i];
}

static void normal(ls_rng rng, uint64_t high, uint64_t block, float deviation, float *out)
{
	tile t;
	float z[4][TILE];
	draw(&t, rng, high, block);
	box_muller(t.word[0], t.word[1], deviation, z[0], z[1]);
	box_muller(t.word[2], t.word[3], deviation, z[2], z[3]);
	interleave(z, out);
}

/* low + (bound - low) u may round up to the bound, which is not in the range: the float before it is. */
static void uniform(ls_rng rng, uint64_t high, uint64_t block, float low, float bound, float *out)
{
	tile t;
	float u[4][TILE];
	float span = bound - low, last = nextafterf(bound, low);
	draw(&t, rng, high, block);
	for (int j = 0; j < 4; j++)
		for (int i = 0; i < TILE; i++) {
			float x = low + span * ((float)(int32_t)(t.word[j][i] >> 8) * 0x1p-24f);
			u[j][i] = x < bound ? x : last;
		}
	interleave(u, out);
}

const ls_rng_kernels LS_ISA_SYMBOL(ls_rng_kernels) = { uniform, normal };
