#include "tokenizer/word_counts.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"

static size_t find_slot(const ls_word_counts *words, const char *text, size_t bytes)
{
	for (size_t i = XXH64(text, bytes, 0) & (words->slots - 1);; i = (i + 1) & (words->slots - 1)) {
		uint32_t number = words->table[i];
		if (!number)
			return i;
		const ls_word_counts_entry *entry = &words->entries[number - 1];
		if (entry->bytes == bytes && memcmp(words->text + entry->begin, text, bytes) == 0)
			return i;
	}
}

static ls_status no_memory(const ls_word_counts *words)
{
	return ls_fail(LS_EMEMORY, "no memory for more than %zu different words", words->count);
}

static ls_status grow_table(ls_word_counts *words)
{
	size_t slots = words->slots ? words->slots * 2 : 1024;
	uint32_t *table = calloc(slots, sizeof(*table));
	if (!table || words->count >= UINT32_MAX / 2) {
		free(table);
		return no_memory(words);
	}
	free(words->table);
	words->table = table;
	words->slots = slots;
	for (size_t i = 0; i < words->count; i++)
		table[find_slot(words, ls_word_counts_text(words, i), words->entries[i].bytes)] = (uint32_t)i + 1;
	return LS_OK;
}

static ls_status append(ls_word_counts *words, const char *text, size_t bytes)
{
	LS_TRY(ls_array_grow(&words->entries, &words->capacity, words->count + 1, sizeof(*words->entries)));
	LS_TRY(ls_array_grow(&words->text, &words->text_capacity, words->text_bytes + bytes, 1));
	memcpy(words->text + words->text_bytes, text, bytes);
	words->entries[words->count++] = (ls_word_counts_entry){ words->text_bytes, (uint32_t)bytes, 0 };
	words->text_bytes += bytes;
	return LS_OK;
}

ls_status ls_word_counts_add(ls_word_counts *words, const char *text, size_t bytes, size_t *number)
{
	if (words->count * 2 >= words->slots)
		LS_TRY(grow_table(words));
	size_t slot = find_slot(words, text, bytes);
	if (!words->table[slot]) {
		LS_TRY(append(words, text, bytes));
		words->table[slot] = (uint32_t)words->count;
	}
	size_t which = words->table[slot] - 1;
	words->entries[which].count++;
	if (number)
		*number = which;
	return LS_OK;
}

void ls_word_counts_free(ls_word_counts *words)
{
	free(words->entries);
	free(words->text);
	free(words->table);
	*words = (ls_word_counts){ 0 };
}
