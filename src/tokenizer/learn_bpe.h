/*
 * learn_bpe.h - a vocabulary for language models learnt from texts: byte-level byte-pair encoding, or characters.
 *
 * With merges: the words of a text (bpe.h) are counted; a word starts as its bytes, and the most frequent pair of
 * neighbours is joined, again and again (merge.h), until the vocabulary is full or no pair is frequent enough. In the
 * order of ids: the 256 bytes in GPT-2's order, what was joined in the order of joining, the end of a text. Of
 * characters: those that occur, in the order of code points, and the end of a text.
 *
 * The same texts give the same vocabulary, byte for byte, in any order.
 */
#ifndef LS_TOKENIZER_LEARN_BPE_H
#define LS_TOKENIZER_LEARN_BPE_H

#include "tokenizer/bpe.h"

typedef struct ls_learn_bpe_options {
	size_t size;        /* pieces, at most; without effect on characters */
	uint64_t min_count; /* a pair that occurs less often is not joined; 0: 2 */
	int characters;
	/* Progress callback while pieces are joined; may be NULL. */
	void (*progress)(void *context, size_t pieces);
	void *context;
} ls_learn_bpe_options;

typedef struct ls_bpe_learner ls_bpe_learner;

ls_status ls_bpe_learner_new(ls_bpe_learner **out, const ls_learn_bpe_options *options);
void ls_bpe_learner_free(ls_bpe_learner *learner);

/* Count the words or characters of a text. A vocabulary of characters fails with LS_EFORMAT where it is not UTF-8. */
ls_status ls_bpe_learner_add(ls_bpe_learner *learner, const char *text, size_t bytes);
uint64_t ls_bpe_learner_words(const ls_bpe_learner *learner); /* words or characters so far, repeated ones included */

/* Call once. */
ls_status ls_bpe_learner_finish(ls_bpe_learner *learner, ls_bpe **out);

#endif
