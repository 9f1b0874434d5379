#include "tokenizer/learn_vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/basic_tokenizer.h"
#include "tokenizer/merge.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_counts.h"

enum { ALPHABET_MAX = 1000, MIN_COUNT = 2, PROGRESS_EVERY = 256 };

typedef struct character {
	uint64_t count;
	int32_t first, next; /* its pieces; 0: none, a special token */
} character;

struct ls_learner {
	ls_learn_options options;
	ls_word_counts words;
	uint64_t total;
	ls_word_counts pieces;
	character *characters; /* (character_count), by code point */
	int32_t character_count;
	ls_merge *merge;
};

ls_status ls_learner_new(ls_learner **out, const ls_learn_options *options)
{
	if (options->size > LS_VOCAB_PIECES_MAX)
		return ls_fail(LS_EINVALID, "a vocabulary of %zu pieces; at most %d", options->size,
			       LS_VOCAB_PIECES_MAX);
	ls_learner *learner = calloc(1, sizeof(*learner));
	if (!learner)
		return ls_fail(LS_EMEMORY, "no memory to learn a vocabulary");
	learner->options = *options;
	if (!options->min_count)
		learner->options.min_count = MIN_COUNT;
	if (!options->alphabet_max)
		learner->options.alphabet_max = ALPHABET_MAX;
	*out = learner;
	return LS_OK;
}

void ls_learner_free(ls_learner *learner)
{
	if (!learner)
		return;
	ls_merge_free(learner->merge);
	ls_word_counts_free(&learner->words);
	ls_word_counts_free(&learner->pieces);
	free(learner->characters);
	free(learner);
}

static ls_status count_word(void *context, const char *word, size_t bytes, ls_word_kind kind)
{
	ls_learner *learner = context;
	learner->total++;
	return kind == LS_WORD_PLAIN ? ls_word_counts_add(&learner->words, word, bytes, NULL) : LS_OK;
}

ls_status ls_learner_add(ls_learner *learner, const char *text, size_t bytes)
{
	const ls_learn_options *o = &learner->options;
	ls_basic basic = { o->cased, o->replace_invalid, LS_WORD_MAX_DEFAULT, count_word, learner };
	return ls_basic_split(&basic, text, bytes);
}

uint64_t ls_learner_words(const ls_learner *learner)
{
	return learner->total;
}

/* --- the alphabet --- */

/* Characters of word i; returns how many. */
static size_t word_characters(const ls_learner *learner, size_t i, int32_t chars[LS_WORD_MAX_DEFAULT])
{
	const char *text = ls_word_counts_text(&learner->words, i);
	size_t bytes = learner->words.entries[i].bytes, count = 0;
	for (size_t at = 0; at < bytes; count++)
		at += ls_char_decode(text + at, bytes - at, &chars[count]);
	return count;
}

static ls_status count_characters(ls_learner *learner)
{
	int32_t chars[LS_WORD_MAX_DEFAULT], highest = 0;
	for (size_t i = 0; i < learner->words.count; i++)
		for (size_t k = word_characters(learner, i, chars); k-- > 0;)
			highest = chars[k] > highest ? chars[k] : highest;
	learner->character_count = highest + 1;
	learner->characters = calloc((size_t)highest + 1, sizeof(*learner->characters));
	if (!learner->characters)
		return ls_fail(LS_EMEMORY, "no memory for an alphabet");
	for (size_t i = 0; i < learner->words.count; i++)
		for (size_t k = word_characters(learner, i, chars); k-- > 0;)
			learner->characters[chars[k]].count += learner->words.entries[i].count;
	return LS_OK;
}

typedef struct ranked {
	uint64_t count;
	int32_t c;
} ranked;

static int by_count(const void *a, const void *b)
{
	const ranked *x = a, *y = b;
	return x->count != y->count ? (x->count > y->count ? -1 : 1) : (x->c > y->c) - (x->c < y->c);
}

/* Forget the characters beyond the most frequent ones: their counts become 0. */
static ls_status cut_alphabet(ls_learner *learner)
{
	size_t count = 0, most = learner->options.alphabet_max;
	for (int32_t c = 0; c < learner->character_count; c++)
		count += learner->characters[c].count > 0;
	if (count <= most)
		return LS_OK;
	ranked *list = malloc(count * sizeof(*list));
	if (!list)
		return ls_fail(LS_EMEMORY, "no memory for an alphabet of %zu characters", count);
	count = 0;
	for (int32_t c = 0; c < learner->character_count; c++)
		if (learner->characters[c].count > 0)
			list[count++] = (ranked){ learner->characters[c].count, c };
	qsort(list, count, sizeof(*list), by_count);
	for (size_t i = most; i < count; i++)
		learner->characters[list[i].c].count = 0;
	free(list);
	return LS_OK;
}

static int stands_alone(int32_t c)
{
	return ls_char_is_punctuation(c) || ls_char_classify(c) == LS_CHAR_ALONE;
}

static ls_status add_character(ls_learner *learner, int32_t c, int continued)
{
	char text[6] = "##";
	size_t number, skip = continued ? 2 : 0, bytes = skip + ls_char_encode(c, text + skip);
	LS_TRY(ls_word_counts_add(&learner->pieces, text, bytes, &number));
	*(continued ? &learner->characters[c].next : &learner->characters[c].first) = (int32_t)number;
	return LS_OK;
}

static ls_status add_alphabet(ls_learner *learner)
{
	const char *special;
	for (size_t i = 0; (special = ls_special_text(i)); i++)
		LS_TRY(ls_word_counts_add(&learner->pieces, special, strlen(special), NULL));
	for (int continued = 0; continued < 2; continued++)
		for (int32_t c = 0; c < learner->character_count; c++)
			if (learner->characters[c].count && !(continued && stands_alone(c)))
				LS_TRY(add_character(learner, c, continued));
	if (learner->pieces.count > learner->options.size)
		return ls_fail(LS_EINVALID,
			       "a vocabulary of %zu pieces has no room for the characters of these texts; "
			       "it takes at least %zu",
			       learner->options.size, learner->pieces.count);
	return LS_OK;
}

/* --- joining --- */

static ls_status add_word(ls_learner *learner, size_t i)
{
	int32_t chars[LS_WORD_MAX_DEFAULT];
	size_t count = word_characters(learner, i, chars);
	for (size_t k = 0; k < count; k++) {
		const character *c = &learner->characters[chars[k]];
		if (!(chars[k] = k ? c->next : c->first))
			return LS_OK; /* not in the alphabet: the word stays [UNK] */
	}
	return ls_merge_add(learner->merge, chars, count, learner->words.entries[i].count);
}

static ls_status join(ls_learner *learner)
{
	const ls_learn_options *o = &learner->options;
	int done = 0;
	LS_TRY(ls_merge_new(&learner->merge, &learner->pieces, strlen("##"), LS_PIECE_BYTES_MAX));
	for (size_t i = 0; i < learner->words.count; i++)
		LS_TRY(add_word(learner, i));
	while (learner->pieces.count < o->size && !done) {
		LS_TRY(ls_merge_next(learner->merge, o->min_count, &done));
		if (o->progress && learner->pieces.count % PROGRESS_EVERY == 0)
			o->progress(o->context, learner->pieces.count);
	}
	return LS_OK;
}

static ls_status make_vocab(const ls_word_counts *pieces, ls_vocab **out)
{
	const char **texts = malloc(pieces->count * sizeof(*texts));
	char *block = malloc(pieces->text_bytes + pieces->count), *end = block;
	if (!texts || !block) {
		free(texts);
		free(block);
		return ls_fail(LS_EMEMORY, "no memory for a vocabulary of %zu pieces", pieces->count);
	}
	for (size_t i = 0; i < pieces->count; i++) {
		texts[i] = end;
		memcpy(end, ls_word_counts_text(pieces, i), pieces->entries[i].bytes);
		end += pieces->entries[i].bytes;
		*end++ = '\0';
	}
	ls_status status = ls_vocab_new(out, texts, pieces->count);
	free(texts);
	free(block);
	return status;
}

ls_status ls_learner_finish(ls_learner *learner, ls_vocab **out)
{
	if (learner->words.count == 0)
		return ls_fail(LS_EFORMAT, "no words to learn a vocabulary from");
	LS_TRY(count_characters(learner));
	LS_TRY(cut_alphabet(learner));
	LS_TRY(add_alphabet(learner));
	LS_TRY(join(learner));
	return make_vocab(&learner->pieces, out);
}
