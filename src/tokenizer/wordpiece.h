/*
 * wordpiece.h - from text to ids: BERT's reference tokenizer.
 *
 * Words are those of basic_tokenizer.h. A word becomes the longest piece it begins with, then the longest of "##" and
 * what is left, and so on; if no pieces cover the word to its end, or it is too long, it becomes [UNK].
 */
#ifndef LS_TOKENIZER_WORDPIECE_H
#define LS_TOKENIZER_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tokenizer/vocab.h"

typedef struct ls_wordpiece_options {
	int cased;           /* the vocabulary knows capitals and accents */
	int replace_invalid; /* invalid UTF-8 becomes U+FFFD, which cleaning drops; otherwise it is an error */
	int word_max;        /* characters beyond which a word is [UNK]; 0: 100; at most 1000 */
} ls_wordpiece_options;

typedef struct ls_wordpiece ls_wordpiece;

typedef struct ls_tokens {
	int32_t *ids;
	size_t count, capacity;
} ls_tokens;

/* The vocabulary is borrowed. `options` may be NULL: uncased, strict. */
ls_status ls_wordpiece_new(ls_wordpiece **out, const ls_vocab *vocab, const ls_wordpiece_options *options);
void ls_wordpiece_free(ls_wordpiece *wordpiece);

/*
 * Append the ids of a text; no [CLS] or [SEP] is added. Any number of threads may share a tokenizer. Fails with
 * LS_EFORMAT and the byte's position when the text is not UTF-8; then nothing was appended.
 */
ls_status ls_wordpiece_encode(const ls_wordpiece *wordpiece, const char *text, size_t bytes, ls_tokens *append_to);

/* Zero one ({ 0 }) before the first use; free may be followed by another use. */
ls_status ls_tokens_add(ls_tokens *tokens, int32_t id);
void ls_tokens_free(ls_tokens *tokens);

#endif
