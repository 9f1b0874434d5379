/*
 * rng_kernels.h - the bulk forms of the generator, one table per instruction set. All give the same bits.
 */
#ifndef LS_BASE_RNG_KERNELS_H
#define LS_BASE_RNG_KERNELS_H

#include <stdint.h>

#include "base/isa.h"
#include "base/rng.h"

enum { LS_RNG_TILE = 16 }; /* blocks computed side by side */

typedef struct ls_rng_kernels {
	/* 4 * LS_RNG_TILE elements of blocks block, block + 1, ... */
	void (*uniform)(ls_rng rng, uint64_t high, uint64_t block, float low, float bound, float *out);
	void (*normal)(ls_rng rng, uint64_t high, uint64_t block, float deviation, float *out);
} ls_rng_kernels;

LS_ISA_DECLARE(ls_rng_kernels, ls_rng_kernels);

#endif
