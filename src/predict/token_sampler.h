/*
 * token_sampler.h - drawing a token from logits.
 */
#ifndef LS_PREDICT_TOKEN_SAMPLER_H
#define LS_PREDICT_TOKEN_SAMPLER_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_token_sampler_options {
	int64_t vocabulary;
	double temperature; /* 0: the most probable token */
	int64_t top_k;      /* 0: all */
	double top_p;
	uint64_t seed;
} ls_token_sampler_options;

typedef struct ls_token_sampler ls_token_sampler;

ls_status ls_token_sampler_new(ls_token_sampler **out, const ls_token_sampler_options *options);
void ls_token_sampler_free(ls_token_sampler *sampler); /* harmless on NULL */

/* Token number `place` of text number `text`. Of equally probable tokens the one with the smaller id comes first. */
int32_t ls_token_sampler_draw(ls_token_sampler *sampler, const float *logits, uint64_t text, uint64_t place);

#endif
