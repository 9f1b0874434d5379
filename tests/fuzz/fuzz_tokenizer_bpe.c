/*
 * Any bytes as vocab.json and merges.txt (with a zero byte between them): refused with a message, or a vocabulary that
 * decodes what it encodes. Any bytes as a text: a vocabulary learnt from it, and single bytes, give them back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/bpe.h"
#include "tokenizer/learn_bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void require_round_trip(const ls_bpe *bpe, const char *text, size_t bytes)
{
	ls_tokens tokens = { 0 };
	size_t at = 0;

	if (ls_bpe_encode(bpe, text, bytes, &tokens) != LS_OK) {
		require(ls_bpe_has_characters(bpe) && tokens.count == 0 && strstr(ls_last_error(), "byte "));
		ls_tokens_free(&tokens);
		return;
	}
	for (size_t i = 0; i < tokens.count; i++) {
		size_t length = 0;
		const char *piece = ls_bpe_piece(bpe, tokens.ids[i], &length);
		require(piece && length > 0 && at + length <= bytes && memcmp(piece, text + at, length) == 0);
		at += length;
	}
	require(at == bytes);
	ls_tokens_free(&tokens);
}

static void try_files(const char *text, size_t size)
{
	const char *zero = memchr(text, 0, size);
	size_t vocab = zero ? (size_t)(zero - text) : size;
	ls_bpe *bpe = NULL;

	if (ls_bpe_parse(&bpe, text, vocab, "fuzz", zero ? zero + 1 : NULL, zero ? size - vocab - 1 : 0, "fuzz") !=
	    LS_OK) {
		require(!bpe && strncmp(ls_last_error(), "fuzz", 4) == 0);
		return;
	}
	for (size_t id = 0; id < ls_bpe_size(bpe); id++) {
		size_t length = 0;
		const char *piece = ls_bpe_piece(bpe, (int32_t)id, &length);
		require(ls_bpe_find(bpe, piece, length) == (int32_t)id);
	}
	require_round_trip(bpe, text, size);
	ls_bpe_free(bpe);
}

static void try_text(const char *text, size_t size, int characters)
{
	const ls_learn_bpe_options options = { .size = 300, .min_count = 1, .characters = characters };
	ls_bpe_learner *learner = NULL;
	ls_bpe *bpe = NULL;

	require(ls_bpe_learner_new(&learner, &options) == LS_OK);
	if (ls_bpe_learner_add(learner, text, size) == LS_OK && ls_bpe_learner_finish(learner, &bpe) == LS_OK)
		require_round_trip(bpe, text, size);
	ls_bpe_free(bpe);
	ls_bpe_learner_free(learner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	ls_bpe *bytes = NULL;

	for (size_t at = 0, word; at < size; at += word) {
		word = ls_bpe_word(text + at, size - at);
		require(word > 0 && word <= size - at);
	}
	try_files(text, size);
	try_text(text, size, 0);
	try_text(text, size, 1);
	require(ls_bpe_new_bytes(&bytes) == LS_OK);
	require_round_trip(bytes, text, size);
	ls_bpe_free(bytes);
	return 0;
}
