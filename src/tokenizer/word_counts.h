/*
 * word_counts.h - texts, numbered in the order of their first coming, each with a count.
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
	char *text; /* all of them, one behind the other */
	size_t text_bytes, text_capacity;
	uint32_t *table; /* number + 1, 0: empty; at most half full */
	size_t slots;
} ls_word_counts;

/* Count a text once more; *number (which may be NULL) is which one it is. */
ls_status ls_word_counts_add(ls_word_counts *words, const char *text, size_t bytes, size_t *number);
void ls_word_counts_free(ls_word_counts *words);

static inline const char *ls_word_counts_text(const ls_word_counts *words, size_t number)
{
	return words->text + words->entries[number].begin;
}

#endif
