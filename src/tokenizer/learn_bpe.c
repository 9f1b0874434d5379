/*
 * learn_bpe.c - counts of words or characters, and a vocabulary made of them.
 */
#include "tokenizer/learn_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tokenizer/merge.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"
#include "tokenizer/word_counts.h"

enum { BYTES = 256, CHARACTERS = 0x110000, MIN_COUNT = 2, PROGRESS_EVERY = 256 };

struct ls_bpe_learner {
	ls_learn_bpe_options options;
	uint64_t total;
	ls_word_counts words;
	uint8_t *seen; /* (CHARACTERS) NULL: words are counted */
	/* learning */
	ls_word_counts pieces;
	ls_merge *merge;
	int32_t (*merges)[2];
	size_t merge_count, merge_room;
};

static ls_status no_memory(void)
{
	return ls_fail(LS_EMEMORY, "no memory to learn a vocabulary");
}

ls_status ls_bpe_learner_new(ls_bpe_learner **out, const ls_learn_bpe_options *options)
{
	if (!options->characters && (options->size <= BYTES || options->size > LS_VOCAB_PIECES_MAX))
		return ls_fail(LS_EINVALID, "a vocabulary of %zu pieces: it can have %d (bytes and end of text) to %d",
			       options->size, BYTES + 1, LS_VOCAB_PIECES_MAX);
	ls_bpe_learner *learner = calloc(1, sizeof(*learner));
	if (!learner)
		return no_memory();
	learner->options = *options;
	if (!options->min_count)
		learner->options.min_count = MIN_COUNT;
	learner->seen = options->characters ? calloc(CHARACTERS, 1) : NULL;
	if (options->characters && !learner->seen) {
		ls_bpe_learner_free(learner);
		return no_memory();
	}
	*out = learner;
	return LS_OK;
}

void ls_bpe_learner_free(ls_bpe_learner *learner)
{
	if (!learner)
		return;
	ls_merge_free(learner->merge);
	ls_word_counts_free(&learner->words);
	ls_word_counts_free(&learner->pieces);
	free(learner->merges);
	free(learner->seen);
	free(learner);
}

static ls_status add_characters(ls_bpe_learner *learner, const char *text, size_t bytes)
{
	for (size_t at = 0, used; at < bytes; at += used, learner->total++) {
		int32_t c;
		used = ls_char_decode(text + at, bytes - at, &c);
		if (!used)
			return ls_fail(LS_EFORMAT, "byte %zu (0x%02x) is not UTF-8", at, (uint8_t)text[at]);
		learner->seen[c] = 1;
	}
	return LS_OK;
}

ls_status ls_bpe_learner_add(ls_bpe_learner *learner, const char *text, size_t bytes)
{
	if (learner->seen)
		return add_characters(learner, text, bytes);
	for (size_t at = 0, word; at < bytes; at += word, learner->total++) {
		word = ls_bpe_word(text + at, bytes - at);
		if (word <= UINT32_MAX)
			LS_TRY(ls_word_counts_add(&learner->words, text + at, word, NULL));
	}
	return LS_OK;
}

uint64_t ls_bpe_learner_words(const ls_bpe_learner *learner)
{
	return learner->total;
}

/* The pieces, then the end of a text. */
static ls_status make_vocabulary(const ls_bpe_learner *learner, ls_bpe **out)
{
	const ls_word_counts *pieces = &learner->pieces;
	const char **texts = calloc(pieces->count + 1, sizeof(*texts));
	size_t *bytes = calloc(pieces->count + 1, sizeof(*bytes));
	ls_status status = texts && bytes ? LS_OK : no_memory();

	for (size_t i = 0; i < pieces->count && status == LS_OK; i++) {
		texts[i] = ls_word_counts_text(pieces, i);
		bytes[i] = pieces->entries[i].bytes;
	}
	if (status == LS_OK) {
		texts[pieces->count] = LS_BPE_END;
		bytes[pieces->count] = strlen(LS_BPE_END);
		status = ls_bpe_new(out, texts, bytes, pieces->count + 1, (const int32_t(*)[2])learner->merges,
				    learner->merge_count);
	}
	free(texts);
	free(bytes);
	return status;
}

static ls_status list_characters(ls_bpe_learner *learner)
{
	char text[4];
	for (int32_t c = 0; c < CHARACTERS; c++)
		if (learner->seen[c])
			LS_TRY(ls_word_counts_add(&learner->pieces, text, ls_char_encode(c, text), NULL));
	return LS_OK;
}

/* A word as pieces: its bytes. */
static ls_status add_word(ls_bpe_learner *learner, size_t i, const int32_t id[BYTES], int32_t **sequence, size_t *room)
{
	const ls_word_counts_entry *entry = &learner->words.entries[i];
	const char *text = ls_word_counts_text(&learner->words, i);

	LS_TRY(ls_array_grow(sequence, room, entry->bytes, sizeof(**sequence)));
	for (size_t k = 0; k < entry->bytes; k++)
		(*sequence)[k] = id[(uint8_t)text[k]];
	return ls_merge_add(learner->merge, *sequence, entry->bytes, entry->count);
}

static ls_status add_words(ls_bpe_learner *learner)
{
	uint8_t order[BYTES];
	int32_t id[BYTES], *sequence = NULL;
	size_t room = 0;
	ls_status status = LS_OK;

	ls_bpe_byte_order(order);
	for (int i = 0; i < BYTES; i++) {
		id[order[i]] = i;
		LS_TRY(ls_word_counts_add(&learner->pieces, (const char *)&order[i], 1, NULL));
	}
	for (size_t i = 0; i < learner->words.count && status == LS_OK; i++)
		status = add_word(learner, i, id, &sequence, &room);
	free(sequence);
	return status;
}

static ls_status join(ls_bpe_learner *learner)
{
	const ls_learn_bpe_options *o = &learner->options;
	int done = 0;

	LS_TRY(ls_merge_new(&learner->merge, &learner->pieces, 0, LS_PIECE_BYTES_MAX));
	LS_TRY(add_words(learner));
	while (learner->pieces.count + 1 < o->size) {
		LS_TRY(ls_merge_next(learner->merge, o->min_count, &done));
		if (done)
			break;
		LS_TRY(ls_array_grow(&learner->merges, &learner->merge_room, learner->merge_count + 1,
				     sizeof(*learner->merges)));
		int32_t *pair = learner->merges[learner->merge_count++];
		ls_merge_last(learner->merge, &pair[0], &pair[1]);
		if (o->progress && learner->pieces.count % PROGRESS_EVERY == 0)
			o->progress(o->context, learner->pieces.count);
	}
	return LS_OK;
}

ls_status ls_bpe_learner_finish(ls_bpe_learner *learner, ls_bpe **out)
{
	if (learner->total == 0)
		return ls_fail(LS_EFORMAT, "no text to learn a vocabulary from");
	LS_TRY(learner->seen ? list_characters(learner) : join(learner));
	return make_vocabulary(learner, out);
}
