/*
 * learn_vocab.h - a WordPiece vocabulary learnt from texts.
 *
 * Words are those of basic_tokenizer.h, counted. A word starts as its characters, "##" before all but the first; then
 * the most frequent pair of neighbours is joined, again and again (byte-pair encoding by count, with WordPiece's
 * marks), until the vocabulary is full or no pair is frequent enough. In the order of ids:
 *
 *   1. [PAD] [UNK] [CLS] [SEP] [MASK], from 0
 *   2. the alphabet in the order of code points: characters that begin a word, then "##" and those that go on. Both for
 * each character, except those that always stand alone (punctuation, ideographs)
 *   3. what was joined, in the order of joining
 *
 * The same words and counts give the same vocabulary, byte for byte, in any order. Every word of the texts can be
 * tokenized without [UNK], unless it is too long or has a character that is not in the alphabet.
 */
#ifndef LS_TOKENIZER_LEARN_VOCAB_H
#define LS_TOKENIZER_LEARN_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tokenizer/vocab.h"

typedef struct ls_learn_options {
	size_t size;         /* pieces, at most; all of the above */
	uint64_t min_count;  /* a pair that occurs less often is not joined; 0: 2 */
	size_t alphabet_max; /* the most frequent characters are kept, equals by code point; 0: 1000 */
	int cased, replace_invalid;
	/* Progress callback while pieces are joined; may be NULL. */
	void (*progress)(void *context, size_t pieces);
	void *context;
} ls_learn_options;

typedef struct ls_learner ls_learner;

ls_status ls_learner_new(ls_learner **out, const ls_learn_options *options);
void ls_learner_free(ls_learner *learner);

/* Count the words of a text. Fails as ls_basic_split() does. */
ls_status ls_learner_add(ls_learner *learner, const char *text, size_t bytes);
uint64_t ls_learner_words(const ls_learner *learner); /* so far, repeated ones included */

/* Call once. Refuses a size that is too small for the alphabet, and texts without a word. */
ls_status ls_learner_finish(ls_learner *learner, ls_vocab **out);

#endif
