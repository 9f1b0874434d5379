/*
 * loader_variant.h - loaders of all kinds for one case: in order and shuffled, with and without threads that read
 * ahead.
 */
#ifndef LS_TESTS_LOADER_VARIANT_H
#define LS_TESTS_LOADER_VARIANT_H

#include "data/loader.h"

/* Of 0 to 3; `sizes` are those of the dataset, a micro-batch and a batch. */
static inline ls_loader_options loader_variant(uint64_t seed, int variant, const int64_t sizes[3])
{
	return (ls_loader_options){ .seed = seed,
				    .shuffle = variant & 1,
				    .microbatch = sizes[1],
				    .global_batch = sizes[2],
				    .ahead = variant,
				    .threads = variant };
}

#endif
