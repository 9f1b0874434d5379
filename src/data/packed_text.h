/*
 * packed_text.h - the text of a loader's slot: sentences packed end to end (params/packed.h).
 *
 * Samples are read straight to their place, in order: sample i begins where sample i - 1 ended. The arrays hold the
 * most a micro-batch can have, so that nothing is allocated later.
 */
#ifndef LS_DATA_PACKED_TEXT_H
#define LS_DATA_PACKED_TEXT_H

#include <lockstep/data.h>

#include "params/packed.h"

typedef struct ls_microbatch_text {
	ls_packed packed;              /* points to the writable arrays below */
	int32_t *start, *masked_start; /* (samples + 1) */
	int32_t *token, *segment;      /* (samples * tokens_max) */
	int32_t *masked_at, *target;   /* (samples * masked_max) */
} ls_microbatch_text;

/* Bytes that `samples` samples take, whole cache lines; samples * tokens_max fits an int32. */
size_t ls_microbatch_text_bytes(const ls_dataset_info *info, int64_t samples);

/* Lay the arrays out from `base` on, aligned to a cache line. */
void ls_microbatch_text_place(ls_microbatch_text *text, const ls_dataset_info *info, int64_t samples, void *base);

/* Read sample `index` of the dataset as sample i of the micro-batch, after samples 0 .. i-1. */
ls_status ls_microbatch_text_read(ls_microbatch_text *text, const ls_dataset *dataset, int64_t i, uint64_t index,
				  uint64_t epoch, int32_t *label);

#endif
