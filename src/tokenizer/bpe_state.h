/*
 * bpe_state.h - the inside of an ls_bpe, for its files (bpe_files.c).
 */
#ifndef LS_TOKENIZER_BPE_STATE_H
#define LS_TOKENIZER_BPE_STATE_H

#include "tokenizer/bpe.h"

enum { LS_BPE_PIECE_BYTES_MAX = 1 << 16, LS_BPE_BYTE_COUNT = 256 };

typedef struct ls_bpe_merge {
	int32_t left, right, joined;
	uint32_t line; /* of merges.txt, for errors */
} ls_bpe_merge;

struct ls_bpe {
	char *text;    /* all pieces, one behind the other */
	size_t *begin; /* (count + 1) */
	size_t count, text_bytes, text_room, begin_room;
	uint32_t *table; /* id + 1 by text; 0: empty; at most half full */
	size_t slots;
	ls_bpe_merge *merges; /* (merge_count), in their order */
	size_t merge_count, merge_room;
	uint32_t *pairs; /* rank + 1 by pair */
	size_t pair_slots;
	int32_t byte[LS_BPE_BYTE_COUNT]; /* -1: none */
	int32_t end;
	uint64_t hash;
};

/* One is made by adding all pieces, indexing them, adding all merges, indexing them, and finishing; `name` is the file
 * that errors name. ls_bpe_finish() frees it where `status` is not LS_OK, and returns that. */
ls_bpe *ls_bpe_alloc(void); /* NULL, with the error set, without memory */
ls_status ls_bpe_add_piece(ls_bpe *bpe, const char *text, size_t bytes);
ls_status ls_bpe_index_pieces(ls_bpe *bpe, const char *name);
ls_status ls_bpe_add_merge(ls_bpe *bpe, int32_t left, int32_t right, const char *name, size_t line);
ls_status ls_bpe_index_merges(ls_bpe *bpe, const char *name);
ls_status ls_bpe_check_bytes(const ls_bpe *bpe, const char *name); /* every byte is a piece, as merges need it */
ls_status ls_bpe_finish(ls_bpe **out, ls_bpe *bpe, ls_status status);

size_t ls_bpe_piece_bytes(const ls_bpe *bpe, size_t id);
int ls_bpe_is_visible(int32_t c); /* files show this byte as itself */

#endif
