/*
 * merge.c - pairs with their counts and words, a table to find them, and a heap to choose by.
 *
 * Invariants between two joinings
 *  1. A pair's count is the sum over words of the word's count times how often the two are neighbours in it.
 *  2. A pair's list has every word that holds it, and maybe others, maybe more than once.
 *  3. The heap has an entry for each pair of count > 0 with at least that count. An entry that promises more than the
 *     pair has is put back with what it has.
 */
#include "tokenizer/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/rng.h"

typedef struct word {
	size_t begin; /* in symbols */
	uint32_t length;
	uint64_t count;
} word;

typedef struct pair {
	int32_t left, right;
	int touched; /* by the joining under way */
	uint64_t count;
	uint32_t *words;
	size_t used, capacity;
} pair;

typedef struct candidate {
	uint64_t count;
	uint32_t pair;
} candidate;

struct ls_merge {
	ls_word_counts *pieces;
	size_t mark; /* bytes before a piece that continues a word */
	size_t longest;
	int32_t last_left, last_right;
	int32_t *symbols; /* all words' pieces; a word stays where it is and becomes shorter */
	size_t symbol_count, symbol_capacity;
	word *words;
	size_t word_count, word_capacity;
	pair *pairs;
	size_t pair_count, pair_capacity;
	uint32_t *table; /* pair + 1, 0: empty; at most half full */
	size_t slots;
	candidate *heap;
	size_t heap_count, heap_capacity;
	uint32_t *touched; /* pairs */
	size_t touched_count, touched_capacity;
	char *text; /* to join in */
	size_t text_capacity;
	int started;
};

/* Make room for one more of an array's elements. */
#define RESERVE(array, count, capacity) ls_array_grow(&(array), &(capacity), (count) + 1, sizeof(*(array)))

ls_status ls_merge_new(ls_merge **out, ls_word_counts *pieces, size_t mark, size_t longest)
{
	ls_merge *merge = calloc(1, sizeof(*merge));
	if (!merge)
		return ls_fail(LS_EMEMORY, "no memory to learn a vocabulary");
	merge->pieces = pieces;
	merge->mark = mark;
	merge->longest = longest;
	*out = merge;
	return LS_OK;
}

void ls_merge_free(ls_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->pair_count; i++)
		free(merge->pairs[i].words);
	free(merge->symbols);
	free(merge->words);
	free(merge->pairs);
	free(merge->table);
	free(merge->heap);
	free(merge->touched);
	free(merge->text);
	free(merge);
}

/* --- pairs --- */

static size_t find_slot(const ls_merge *m, int32_t left, int32_t right)
{
	uint64_t hash = ls_mix64((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
	for (size_t i = hash & (m->slots - 1);; i = (i + 1) & (m->slots - 1)) {
		uint32_t number = m->table[i];
		if (!number || (m->pairs[number - 1].left == left && m->pairs[number - 1].right == right))
			return i;
	}
}

static ls_status grow_table(ls_merge *m)
{
	size_t slots = m->slots ? m->slots * 2 : 4096;
	uint32_t *table = calloc(slots, sizeof(*table));
	if (!table || m->pair_count >= UINT32_MAX / 2) {
		free(table);
		return ls_fail(LS_EMEMORY, "no memory for more than %zu pairs of pieces", m->pair_count);
	}
	free(m->table);
	m->table = table;
	m->slots = slots;
	for (size_t i = 0; i < m->pair_count; i++)
		table[find_slot(m, m->pairs[i].left, m->pairs[i].right)] = (uint32_t)i + 1;
	return LS_OK;
}

static ls_status find_pair(ls_merge *m, int32_t left, int32_t right, uint32_t *out)
{
	if (m->pair_count * 2 >= m->slots)
		LS_TRY(grow_table(m));
	size_t slot = find_slot(m, left, right);
	if (!m->table[slot]) {
		LS_TRY(RESERVE(m->pairs, m->pair_count, m->pair_capacity));
		m->pairs[m->pair_count++] = (pair){ .left = left, .right = right };
		m->table[slot] = (uint32_t)m->pair_count;
	}
	*out = m->table[slot] - 1;
	return LS_OK;
}

static ls_status touch(ls_merge *m, uint32_t which)
{
	if (m->pairs[which].touched)
		return LS_OK;
	LS_TRY(RESERVE(m->touched, m->touched_count, m->touched_capacity));
	m->touched[m->touched_count++] = which;
	m->pairs[which].touched = 1;
	return LS_OK;
}

/* Count a pair of word w, and note that it is there. */
static ls_status count_pair(ls_merge *m, uint32_t w, size_t at, int is_new)
{
	const int32_t *s = m->symbols + m->words[w].begin + at;
	uint32_t which;
	LS_TRY(find_pair(m, s[0], s[1], &which));
	pair *p = &m->pairs[which];
	p->count += m->words[w].count;
	if (!is_new)
		return LS_OK;
	LS_TRY(touch(m, which));
	if (p->used && p->words[p->used - 1] == w)
		return LS_OK;
	LS_TRY(RESERVE(p->words, p->used, p->capacity));
	p->words[p->used++] = w;
	return LS_OK;
}

static void uncount_pairs(ls_merge *m, uint32_t w)
{
	const int32_t *s = m->symbols + m->words[w].begin;
	for (size_t i = 0; i + 1 < m->words[w].length; i++)
		m->pairs[m->table[find_slot(m, s[i], s[i + 1])] - 1].count -= m->words[w].count;
}

/* --- the heap --- */

static size_t joined_text(const ls_merge *m, const pair *p, char *out)
{
	const ls_word_counts *pieces = m->pieces;
	const ls_word_counts_entry *left = &pieces->entries[p->left], *right = &pieces->entries[p->right];
	memcpy(out, pieces->text + left->begin, left->bytes);
	memcpy(out + left->bytes, pieces->text + right->begin + m->mark, right->bytes - m->mark);
	return left->bytes + right->bytes - m->mark;
}

static ls_status reserve_text(ls_merge *m, size_t bytes)
{
	return ls_array_grow(&m->text, &m->text_capacity, bytes * 2, 1);
}

static int comes_before(const ls_merge *m, candidate a, candidate b)
{
	if (a.count != b.count)
		return a.count > b.count;
	const pair *p = &m->pairs[a.pair], *q = &m->pairs[b.pair];
	char *first = m->text, *second = m->text + m->text_capacity / 2;
	size_t first_bytes = joined_text(m, p, first), second_bytes = joined_text(m, q, second);
	int order = memcmp(first, second, first_bytes < second_bytes ? first_bytes : second_bytes);
	if (order || first_bytes != second_bytes)
		return order ? order < 0 : first_bytes < second_bytes;
	return m->pieces->entries[p->left].bytes > m->pieces->entries[q->left].bytes;
}

static void swap(candidate *a, candidate *b)
{
	candidate kept = *a;
	*a = *b;
	*b = kept;
}

static ls_status heap_push(ls_merge *m, uint32_t which)
{
	const pair *p = &m->pairs[which];
	if (!p->count || m->pieces->entries[p->left].bytes + m->pieces->entries[p->right].bytes > m->mark + m->longest)
		return LS_OK;
	LS_TRY(reserve_text(m, m->pieces->entries[p->left].bytes + m->pieces->entries[p->right].bytes));
	LS_TRY(RESERVE(m->heap, m->heap_count, m->heap_capacity));
	size_t at = m->heap_count++;
	m->heap[at] = (candidate){ p->count, which };
	for (; at && comes_before(m, m->heap[at], m->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&m->heap[at], &m->heap[(at - 1) / 2]);
	return LS_OK;
}

static candidate heap_pop(ls_merge *m)
{
	candidate top = m->heap[0];
	m->heap[0] = m->heap[--m->heap_count];
	for (size_t at = 0, child; (child = 2 * at + 1) < m->heap_count; at = child) {
		if (child + 1 < m->heap_count && comes_before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!comes_before(m, m->heap[child], m->heap[at]))
			break;
		swap(&m->heap[at], &m->heap[child]);
	}
	return top;
}

static ls_status push_touched(ls_merge *m)
{
	for (size_t i = 0; i < m->touched_count; i++) {
		m->pairs[m->touched[i]].touched = 0;
		LS_TRY(heap_push(m, m->touched[i]));
	}
	m->touched_count = 0;
	return LS_OK;
}

/* --- joining --- */

ls_status ls_merge_add(ls_merge *m, const int32_t *sequence, size_t length, uint64_t count)
{
	if (length < 2)
		return LS_OK; /* nothing to join */
	LS_TRY(RESERVE(m->words, m->word_count, m->word_capacity));
	m->words[m->word_count] = (word){ m->symbol_count, (uint32_t)length, count };
	for (size_t i = 0; i < length; i++) {
		LS_TRY(RESERVE(m->symbols, m->symbol_count, m->symbol_capacity));
		m->symbols[m->symbol_count++] = sequence[i];
	}
	for (size_t i = 0; i + 1 < length; i++)
		LS_TRY(count_pair(m, (uint32_t)m->word_count, i, 1));
	m->word_count++;
	return LS_OK;
}

static int holds(const ls_merge *m, uint32_t w, int32_t left, int32_t right)
{
	const int32_t *s = m->symbols + m->words[w].begin;
	for (size_t i = 0; i + 1 < m->words[w].length; i++)
		if (s[i] == left && s[i + 1] == right)
			return 1;
	return 0;
}

static ls_status join_in_word(ls_merge *m, uint32_t w, int32_t left, int32_t right, int32_t joined)
{
	int32_t *s = m->symbols + m->words[w].begin;
	size_t kept = 0, length = m->words[w].length;
	if (!holds(m, w, left, right))
		return LS_OK;
	uncount_pairs(m, w);
	for (size_t i = 0; i < length; i++) {
		int here = i + 1 < length && s[i] == left && s[i + 1] == right;
		s[kept++] = here ? joined : s[i];
		i += (size_t)here;
	}
	m->words[w].length = (uint32_t)kept;
	for (size_t i = 0; i + 1 < kept; i++)
		LS_TRY(count_pair(m, w, i, s[i] == joined || s[i + 1] == joined));
	return LS_OK;
}

static ls_status join_pair(ls_merge *m, uint32_t which)
{
	pair p = m->pairs[which];
	size_t joined;
	LS_TRY(ls_word_counts_add(m->pieces, m->text, joined_text(m, &p, m->text), &joined));
	m->last_left = p.left;
	m->last_right = p.right;
	m->pairs[which].words = NULL;
	m->pairs[which].used = m->pairs[which].capacity = 0;
	ls_status status = LS_OK;
	for (size_t i = 0; i < p.used && status == LS_OK; i++)
		status = join_in_word(m, p.words[i], p.left, p.right, (int32_t)joined);
	free(p.words);
	return status == LS_OK ? push_touched(m) : status;
}

ls_status ls_merge_next(ls_merge *m, uint64_t min_count, int *done)
{
	if (!m->started)
		LS_TRY(push_touched(m));
	m->started = 1;
	while (m->heap_count && m->heap[0].count >= min_count) {
		candidate top = heap_pop(m);
		uint64_t count = m->pairs[top.pair].count;
		if (count == top.count) {
			*done = 0;
			return join_pair(m, top.pair);
		}
		if (count < top.count)
			LS_TRY(heap_push(m, top.pair));
	}
	*done = 1;
	return LS_OK;
}

void ls_merge_last(const ls_merge *m, int32_t *left, int32_t *right)
{
	*left = m->last_left;
	*right = m->last_right;
}
