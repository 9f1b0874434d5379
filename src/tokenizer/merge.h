/*
 * merge.h - byte-pair merging: join the most frequent pair of neighbouring pieces in all words, again and again.
 *
 * Which pair is next: the one with the highest count over all words; among equals the one whose joined text comes first
 * in the order of bytes, then the one with the longer left part. So the result depends on words and counts alone, not
 * on their order.
 *
 * Cost: a merge touches only the words that contain the pair; choosing the pair is one heap operation.
 */
#ifndef LS_TOKENIZER_MERGE_H
#define LS_TOKENIZER_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tokenizer/word_counts.h"

typedef struct ls_merge ls_merge;

/* Pieces by number. Those that continue a word have `mark` bytes before them that are left out when they are joined: 2
 * for "##", or 0. Nothing longer than `longest` bytes is joined. Borrowed; joined ones are added to it. */
ls_status ls_merge_new(ls_merge **out, ls_word_counts *pieces, size_t mark, size_t longest);
void ls_merge_free(ls_merge *merge);

/* Add a word that occurs `count` times. All come before the first ls_merge_next(). */
ls_status ls_merge_add(ls_merge *merge, const int32_t *sequence, size_t length, uint64_t count);

/* Join the next pair; *done when none is left that occurs min_count times. Its text may be a piece already. */
ls_status ls_merge_next(ls_merge *merge, uint64_t min_count, int *done);
/* The pair that was joined last. */
void ls_merge_last(const ls_merge *merge, int32_t *left, int32_t *right);

#endif
