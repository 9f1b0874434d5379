/*
 * decode.h - texts that go on token by token, with the keys and values of what went before kept (ops/kv_cache.h).
 *
 * All texts go on together, each by one token or more; a text that is at its end stays where it is. What a text gives
 * has the same bits whatever goes on beside it, however it is cut into calls, and on any number of threads.
 */
#ifndef LS_TRAINER_DECODE_H
#define LS_TRAINER_DECODE_H

#include "backends/devices.h"

typedef struct ls_decoder ls_decoder;

typedef struct ls_decoder_options {
	const ls_graph *graph; /* borrowed; finished, a language model */
	const ls_backend *backend;
	int threads;
	int64_t texts;
} ls_decoder_options;

ls_status ls_decoder_new(ls_decoder **out, const ls_decoder_options *options);
void ls_decoder_free(ls_decoder *decoder); /* harmless on NULL */

/* With these weights from now on, borrowed; all texts begin anew. */
void ls_decoder_set_params(ls_decoder *decoder, const float *params, const float *buffers);

/* Tokens that a text can have, and those that text i has. */
int ls_decoder_room(const ls_decoder *decoder);
int ls_decoder_length(const ls_decoder *decoder, int64_t i);

/* Text i begins anew, without a token. */
void ls_decoder_restart(ls_decoder *decoder, int64_t i);

/* The next tokens of text i for the next run: at least one, as many as there is room for. */
void ls_decoder_feed(ls_decoder *decoder, int64_t i, const int32_t *tokens, int count);

/* The next run gives the logits after each of the last `count` tokens that text i was fed, not after the last alone. */
void ls_decoder_ask(ls_decoder *decoder, int64_t i, int count);

/* Text i without its last `count` tokens. */
void ls_decoder_take_back(ls_decoder *decoder, int64_t i, int count);

/* Text i takes no part in the next runs: its logits are not meaningful. */
void ls_decoder_rest(ls_decoder *decoder, int64_t i);

/* All texts go on by what they were fed; logits (rows, vocabulary) of the token after each, a row per text unless more
 * were asked for. */
void ls_decoder_run(ls_decoder *decoder, float *logits);

#endif
