/*
 * words.h - texts, numbered in the order of their first coming, each with a count.
 */
#ifndef LS_TOKENIZER_WORDS_H
#define LS_TOKENIZER_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_words_entry {
	size_t begin; /* in text */
	uint32_t bytes;
	uint64_t count;
} ls_words_entry;

/* Zero one ({ 0 }) before the first use. */
typedef struct ls_words {
	ls_words_entry *entries; /* (count) */
	size_t count, capacity;
	char *text; /* all of them, one behind the other */
	size_t text_bytes, text_capacity;
	uint32_t *table; /* number + 1, 0: empty; at most half full */
	size_t slots;
} ls_words;

/* Count a text once more; *number (which may be NULL) is which one it is. */
ls_status ls_words_add(ls_words *words, const char *text, size_t bytes, size_t *number);
void ls_words_free(ls_words *words);

static inline const char *ls_words_text(const ls_words *words, size_t number)
{
	return words->text + words->entries[number].begin;
}

#endif
