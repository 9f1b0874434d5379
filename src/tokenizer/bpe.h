/*
 * bpe.h - vocabularies for language models: GPT-2's byte-level byte-pair encoding, single bytes, or characters.
 *
 * As files a vocabulary is GPT-2's vocab.json, which numbers the pieces, and merges.txt, which joins them: one pair per
 * line, the first line first. A byte is written as a visible character: itself where it is one, else one from U+0100
 * on. Without a merges.txt the pieces are characters, and a text must have no others. Never changed once made, so any
 * number of threads may use one.
 *
 * Pieces are bytes: with merges, or of single bytes, every text can be encoded, and decodes to the same bytes.
 */
#ifndef LS_TOKENIZER_BPE_H
#define LS_TOKENIZER_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tokenizer/wordpiece.h"

typedef struct ls_bpe ls_bpe;

#define LS_BPE_VOCAB "vocab.json"
#define LS_BPE_MERGES "merges.txt"
#define LS_BPE_BYTES "bytes" /* the name of the vocabulary of single bytes, which has no files */
#define LS_BPE_END "<|endoftext|>"

/* The 256 bytes and the end of a text. */
ls_status ls_bpe_new_bytes(ls_bpe **out);
/* vocab.json or the directory it is in, with the merges.txt beside it; or LS_BPE_BYTES. Errors name file and line. */
ls_status ls_bpe_load(ls_bpe **out, const char *path);
/* The same for files in memory; `merges` may be NULL. Names stand for them in messages. */
ls_status ls_bpe_parse(ls_bpe **out, const char *vocab, size_t vocab_bytes, const char *vocab_name, const char *merges,
		       size_t merges_bytes, const char *merges_name);
/* From pieces, (count) with their lengths, and merges, (merge_count) pairs of ids in their order. */
ls_status ls_bpe_new(ls_bpe **out, const char *const *pieces, const size_t *bytes, size_t count,
		     const int32_t (*merges)[2], size_t merge_count);
/* Both files into a directory that is there, each whole or not at all, vocab.json last; of
 * characters, vocab.json alone. */
ls_status ls_bpe_save(const ls_bpe *bpe, const char *directory);
void ls_bpe_free(ls_bpe *bpe);

/* A path that ls_bpe_load() would take rather than ls_vocab_load(). */
int ls_bpe_is(const char *path);

size_t ls_bpe_size(const ls_bpe *bpe);
int32_t ls_bpe_end(const ls_bpe *bpe); /* the piece that ends a text; -1: none */
int ls_bpe_has_characters(const ls_bpe *bpe);
/* The bytes of piece `id`, not ended by a 0; NULL when there is none. */
const char *ls_bpe_piece(const ls_bpe *bpe, int32_t id, size_t *bytes);
int32_t ls_bpe_find(const ls_bpe *bpe, const char *piece, size_t bytes); /* -1: none */
/* xxh64 of pieces and merges: identifies the vocabulary. */
uint64_t ls_bpe_hash(const ls_bpe *bpe);

/* Append the ids of a text. "<|endoftext|>" in it is text. Fails with LS_EFORMAT on a character that is no piece, with
 * its position; then nothing was appended. */
ls_status ls_bpe_encode(const ls_bpe *bpe, const char *text, size_t bytes, ls_tokens *append_to);

/*
 * Bytes of the first word of a text, as GPT-2 cuts it: no pair is joined across words. The expression is
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
size_t ls_bpe_word(const char *text, size_t bytes);
int ls_bpe_is_space(const char *word, size_t bytes); /* the word is nothing but spaces */

/* For bpe_encode.c: what the pair becomes and how early; 0: it is not joined. Ids of single bytes. */
int ls_bpe_merge_of(const ls_bpe *bpe, int32_t left, int32_t right, int32_t *rank, int32_t *joined);
int32_t ls_bpe_byte(const ls_bpe *bpe, uint8_t byte);

/* The bytes in the order of GPT-2's vocabulary. */
void ls_bpe_byte_order(uint8_t order[256]);

#endif
