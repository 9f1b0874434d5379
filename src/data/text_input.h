/*
 * text_input.h - the vocabulary and tokenizer of a text dataset.
 */
#ifndef LS_DATA_TEXT_INPUT_H
#define LS_DATA_TEXT_INPUT_H

#include <lockstep/data.h>

#include "data/mask.h"
#include "tokenizer/bpe.h"
#include "tokenizer/wordpiece.h"

/* WordPiece for BERT and classifiers; for language models `bpe` alone. */
typedef struct ls_tokenizer {
	ls_vocab *vocab;
	ls_wordpiece *wordpiece;
	ls_special special; /* -1 where there is none */
	ls_bpe *bpe;
} ls_tokenizer;

/* Open the vocabulary options->vocab, else `beside`/vocab.txt; `hint` is the part of the error that says how to get
 * one. With options->next_token it is `beside`/vocab.json, and where there is none, bytes. */
ls_status ls_tokenizer_open(ls_tokenizer *tokenizer, const ls_dataset_options *options, const char *beside,
			    const char *hint);
void ls_tokenizer_close(ls_tokenizer *tokenizer); /* harmless when it is zero */

/* The file that ls_tokenizer_open() takes where options name none: vocab.txt of the directory; for language models
 * (next_token) vocab.json, or "bytes" where there is none. */
ls_status ls_vocabulary_of(char *out, size_t size, const char *directory, int next_token);

size_t ls_tokenizer_size(const ls_tokenizer *tokenizer); /* pieces */
uint64_t ls_tokenizer_hash(const ls_tokenizer *tokenizer);

/* The same of a vocabulary of either kind that nothing is read with. */
ls_status ls_vocabulary_describe(const char *path, int *pieces, uint64_t *hash);

/* Offset of the first byte that is not UTF-8, or `bytes`. */
size_t ls_text_invalid(const char *text, size_t bytes);

#endif
