/*
 * fixture.h - shared by the tokenizer tests: a temporary directory, vocabularies, comparing pieces.
 */
#ifndef UNIT_TEXT_FIXTURE_H
#define UNIT_TEXT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "tokenizer/vocab.h"
#include "tokenizer/wordpiece.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"

#define SPECIALS "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The ids' pieces with spaces between them. */
static inline char *pieces_of(const ls_vocab *vocab, const ls_tokens *tokens)
{
	size_t bytes = 1, at = 0;
	for (size_t i = 0; i < tokens->count; i++)
		bytes += strlen(ls_vocab_piece(vocab, tokens->ids[i])) + 1;
	char *out = malloc(bytes);
	assert_non_null(out);
	out[0] = 0;
	for (size_t i = 0; i < tokens->count; i++)
		at += (size_t)snprintf(out + at, bytes - at, "%s%s", i ? " " : "",
				       ls_vocab_piece(vocab, tokens->ids[i]));
	return out;
}

#endif
