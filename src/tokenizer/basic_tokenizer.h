/*
 * basic_tokenizer.h - from text to words: BERT's reference BasicTokenizer.
 *
 *  1. Clean: U+0000, U+FFFD and control characters (Cc, Cf, Co, Cs) vanish; tab, newline, return and Z* separate.
 *  2. CJK ideographs stand alone.
 *  3. Split at separators. [PAD], [UNK], [CLS], [SEP] and [MASK], alone between separators, are kept as they are.
 *  4. Unless cased: lower case, canonical decomposition (NFD), and marks (Mn) vanish. Hangul falls into its jamo.
 *  5. Every punctuation character stands alone.
 *
 * Words come one by one, in the order of the text. Memory: one run between separators; none for ASCII.
 */
#ifndef LS_TOKENIZER_BASIC_TOKENIZER_H
#define LS_TOKENIZER_BASIC_TOKENIZER_H

#include <stddef.h>

#include "base/status.h"

typedef enum ls_word_kind {
	LS_WORD_PLAIN,
	LS_WORD_SPECIAL, /* one of the five special tokens */
	LS_WORD_LONG     /* more than word_max characters; the word is NULL, 0 */
} ls_word_kind;

/* Called for each word, which is valid only during the call. A failure ends the split. */
typedef ls_status (*ls_word_function)(void *context, const char *word, size_t bytes, ls_word_kind kind);

enum { LS_WORD_MAX_DEFAULT = 100, LS_WORD_MAX_LIMIT = 1000 };

typedef struct ls_basic {
	int cased;
	int replace_invalid; /* invalid UTF-8 becomes U+FFFD, which cleaning drops; otherwise it is an error */
	int word_max;        /* 1 .. LS_WORD_MAX_LIMIT characters */
	ls_word_function word;
	void *context;
} ls_basic;

/* Fails with LS_EFORMAT and the byte's position when text is not UTF-8. */
ls_status ls_basic_split(const ls_basic *basic, const char *text, size_t bytes);

/* The special tokens in the order of ls_special, NULL past the end. */
const char *ls_special_text(size_t i);

#endif
