/*
 * rng.h - random numbers by counter, never from a stream.
 *
 * Philox4x32-10 (Salmon et al. 2011). What is drawn depends only on (seed, purpose, stream, counters), so any thread of
 * any node can draw its part, in any order, and a resume draws what the stopped run would have drawn.
 */
#ifndef LS_BASE_RNG_H
#define LS_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What the numbers are for; one purpose never sees another's numbers. */
typedef enum ls_rng_purpose {
	LS_RNG_INIT = 1,    /* stream = hash of the parameter's name */
	LS_RNG_SHUFFLE = 2, /* stream = epoch */
	LS_RNG_DROPOUT = 3, /* stream = step mixed with layer */
	LS_RNG_AUGMENT = 4, /* stream = dataset's own */
	LS_RNG_GLYPH = 5,
	LS_RNG_BENCH = 6,
	LS_RNG_TEST = 7,
	LS_RNG_MASK = 8, /* stream = epoch */
	LS_RNG_BABBLE = 9,
	LS_RNG_PAIRS = 10,     /* which sentences make a pair */
	LS_RNG_TRANSFORM = 11, /* stream = epoch and place among the transforms */
	LS_RNG_CUT = 12,       /* where a text is cut into samples; stream = epoch */
	LS_RNG_GENERATE = 13,  /* stream = text */
	LS_RNG_FAULT = 14      /* counter = start of a run */
} ls_rng_purpose;

typedef struct ls_rng {
	uint32_t key[2];
} ls_rng;

ls_rng ls_rng_make(uint64_t seed, ls_rng_purpose purpose, uint64_t stream);

/* Four uniform 32-bit words for counter (high, low). */
void ls_rng_words(ls_rng rng, uint64_t high, uint64_t low, uint32_t words[4]);

/* The raw block function, for known-answer tests. */
void ls_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Uniform in [0, 1) with 24 bits; uniform integer in [0, n) without noticeable bias (n < 2^32). */
static inline float ls_rng_unit(uint32_t word)
{
	return (float)(word >> 8) * 0x1p-24f;
}
static inline uint32_t ls_rng_below(uint32_t word, uint32_t n)
{
	return (uint32_t)(((uint64_t)word * n) >> 32);
}

/* out[i] = element first+i of the (rng, high) sequence: uniform in [low, bound), or normal (mean 0, deviation s). */
void ls_rng_fill_uniform(ls_rng rng, uint64_t high, uint64_t first, size_t count, float low, float bound, float *out);
void ls_rng_fill_normal(ls_rng rng, uint64_t high, uint64_t first, size_t count, float deviation, float *out);

/* A 64-bit mixer (splitmix64's finaliser) and a string hash for stream numbers. */
uint64_t ls_mix64(uint64_t x);
uint64_t ls_hash_text(const char *text);

#endif
