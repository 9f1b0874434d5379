/*
 * word_counts.h - a hash table of words with counts, numbered in the order of first occurrence.
 */
#ifndef LS_TOKENIZER_WORD_COUNTS_H
#define LS_TOKENIZER_WORD_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_word_counts_entry {
	size_t begin; /* in text */
	uint32_t bytes;
	uint64_t count;
} ls_word_counts_entry;

/* Zero one ({ 0 }) before the first use. */
typedef struct ls_word_counts {
	ls_word_counts_entry *entries; /* (count) */
	size_t count, capacity;
	char *text; /* the text of all words, concatenated */
	size_t text_bytes, text_capacity;
	uint32_t *table; /* number + 1, 0: empty; at most half full */
	size_t slots;
} ls_word_counts;

/* Count one more occurrence of a word; *number (may be NULL) receives its number. */
ls_status ls_word_counts_add(ls_word_counts *words, const char *text, size_t bytes, size_t *number);
void ls_word_counts_free(ls_word_counts *words);

static inline const char *ls_word_counts_text(const ls_word_counts *words, size_t number)
{
	return words->text + words->entries[number].begin;
}

#endif
