/*
 * sample_rng.h - random numbers, sines and cosines for generated samples.
 *
 * Generated samples must be the same bytes on every machine, so nothing here calls libm's sin or cos (their last bits
 * differ between versions and processors): only operations that IEEE 754 rounds exactly.
 */
#ifndef LS_DATA_SAMPLE_RNG_H
#define LS_DATA_SAMPLE_RNG_H

#include <math.h>
#include <stdint.h>

#include "base/rng.h"

/* The random numbers of one sample: counter (index, block), in order. */
typedef struct ls_sample_rng {
	ls_rng rng;
	uint64_t index, block;
	uint32_t words[4];
	int left;
} ls_sample_rng;

static inline ls_sample_rng ls_sample_rng_begin(ls_rng rng, uint64_t index)
{
	return (ls_sample_rng){ .rng = rng, .index = index };
}

static inline uint32_t ls_sample_rng_word(ls_sample_rng *draw)
{
	if (draw->left == 0) {
		ls_rng_words(draw->rng, draw->index, draw->block++, draw->words);
		draw->left = 4;
	}
	return draw->words[--draw->left];
}

/* Uniform in [low, high). */
static inline float ls_sample_rng_range(ls_sample_rng *draw, float low, float high)
{
	return low + (high - low) * ls_rng_unit(ls_sample_rng_word(draw));
}

/* Bell-shaped around 0 within (-1, 1), deviation 0.41: the sum of two uniforms. */
static inline float ls_sample_rng_bell(ls_sample_rng *draw)
{
	uint32_t word = ls_sample_rng_word(draw);
	return ((float)(word & 0xffff) + (float)(word >> 16)) * 0x1p-16f - 1.0f;
}

/* Sine and cosine of an angle in turns: Taylor on the half angle (at most a quarter turn), doubled; error < 1e-5. */
static inline void ls_sine_cosine(float turns, float *sine, float *cosine)
{
	float half = (turns - floorf(turns + 0.5f)) * 3.14159265f;
	float q = half * half;
	float s = half * (1.0f - q / 6.0f * (1.0f - q / 20.0f * (1.0f - q / 42.0f * (1.0f - q / 72.0f))));
	float c = 1.0f - q / 2.0f * (1.0f - q / 12.0f * (1.0f - q / 30.0f * (1.0f - q / 56.0f * (1.0f - q / 90.0f))));
	*sine = 2.0f * s * c;
	*cosine = c * c - s * s;
}

#endif
