/*
 * sample_hash.h - a hash that identifies a dataset, wherever its files are.
 */
#ifndef LS_RUN_SAMPLE_HASH_H
#define LS_RUN_SAMPLE_HASH_H

#include <lockstep/data.h>

/* Images: the hash of their number and of a few samples, evenly spread; text: of the vocabulary and all samples. */
ls_status ls_sample_hash(const ls_dataset *set, uint64_t *hash);

#endif
