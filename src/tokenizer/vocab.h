/*
 * vocab.h - a WordPiece vocabulary: pieces of words, numbered.
 *
 * As a file it is BERT's vocab.txt: one piece per line; line 1 is piece 0. A piece that continues a word
 * begins with "##". Lines may end with \r\n. Never changed once made, so any number of threads may use one.
 */
#ifndef LS_TOKENIZER_VOCAB_H
#define LS_TOKENIZER_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_vocab ls_vocab;

enum { LS_VOCAB_PIECES_MAX = 1 << 24, LS_PIECE_BYTES_MAX = 1000 };

/* Pieces that every vocabulary has: [PAD], [UNK], [CLS], [SEP], [MASK]. */
typedef struct ls_special {
	int32_t pad, unk, cls, sep, mask;
} ls_special;

/* Errors name file and line: pieces that are empty, repeated, too long or not UTF-8; a missing special piece. */
ls_status ls_vocab_load(ls_vocab **out, const char *path);
/* The same for a file in memory; `name` stands for it in messages. */
ls_status ls_vocab_parse(ls_vocab **out, const char *text, size_t bytes, const char *name);
/* The same for an array; a message says "piece 7". */
ls_status ls_vocab_new(ls_vocab **out, const char *const *pieces, size_t count);
/* Written whole or not at all. */
ls_status ls_vocab_save(const ls_vocab *vocab, const char *path);
void ls_vocab_free(ls_vocab *vocab);

size_t ls_vocab_size(const ls_vocab *vocab);
/* The text of piece `id`; NULL when there is none. */
const char *ls_vocab_piece(const ls_vocab *vocab, int32_t id);
/* -1: none. */
int32_t ls_vocab_find(const ls_vocab *vocab, const char *piece, size_t bytes);
const ls_special *ls_vocab_special(const ls_vocab *vocab);
/* xxh64 of the pieces as ls_vocab_save() writes them: identifies the vocabulary. */
uint64_t ls_vocab_hash(const ls_vocab *vocab);

/*
 * The longest piece that `text` (UTF-8) begins with; if `continued`, that "##" and `text` begin with. Returns its id
 * and sets *used to its bytes of `text`; -1: none.
 */
int32_t ls_vocab_longest(const ls_vocab *vocab, const char *text, size_t bytes, int continued, size_t *used);

#endif
