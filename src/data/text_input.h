/*
 * text_input.h - the vocabulary and tokenizer of a text dataset.
 */
#ifndef LS_DATA_TEXT_INPUT_H
#define LS_DATA_TEXT_INPUT_H

#include <lockstep/data.h>

#include "data/mask.h"
#include "tokenizer/wordpiece.h"

typedef struct ls_tokenizer {
	ls_vocab *vocab;
	ls_wordpiece *wordpiece;
	ls_special special;
} ls_tokenizer;

/* Open the vocabulary options->vocab, else `beside`/vocab.txt. `hint` is the part of the error that says how to get
 * one. */
ls_status ls_tokenizer_open(ls_tokenizer *tokenizer, const ls_dataset_options *options, const char *beside,
			    const char *hint);
void ls_tokenizer_close(ls_tokenizer *tokenizer); /* harmless when it is zero */

/* Offset of the first byte that is not UTF-8, or `bytes`. */
size_t ls_text_invalid(const char *text, size_t bytes);

#endif
