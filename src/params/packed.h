/*
 * packed.h - sentences of a micro-batch, packed end to end: no padding anywhere.
 *
 * Token t of the micro-batch is row t of every activation that has one row per token. Sample i has the tokens
 * [start[i], start[i+1]) and predicts those at masked_at[masked_start[i]] .. masked_at[masked_start[i+1] - 1], which
 * are rows of the micro-batch as well.
 */
#ifndef LS_PARAMS_PACKED_H
#define LS_PARAMS_PACKED_H

#include <stdint.h>

typedef struct ls_packed {
	const int32_t *start;        /* (samples + 1) */
	const int32_t *masked_start; /* (samples + 1); all 0 where nothing is to be predicted */
	const int32_t *token;        /* (tokens) ids */
	const int32_t *segment;      /* (tokens) 0 or 1 */
	const int32_t *masked_at;    /* (masked positions) in rising order */
	const int32_t *target;       /* (masked positions) the ids that stood there */
	int64_t step_masked;         /* masked positions of the whole step, on all devices: the divisor of the mean */
	const int32_t *past; /* (samples) tokens of each that went before and are in `cache`; NULL: none is kept */
	const struct ls_kv_cache *cache; /* of keys and values (ops/kv_cache.h) */
} ls_packed;

#endif
