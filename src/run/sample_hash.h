/*
 * sample_hash.h - what tells one dataset from another, wherever its files are.
 */
#ifndef LS_RUN_SAMPLE_HASH_H
#define LS_RUN_SAMPLE_HASH_H

#include <lockstep/data.h>

/* Of their number and a few samples, spread over all of it; of text, of the vocabulary and all of it. */
ls_status ls_sample_hash(const ls_dataset *set, uint64_t *hash);

#endif
