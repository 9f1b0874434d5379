/*
 * bpe_encode.c - from text to ids: words as GPT-2 cuts them, and in each the earliest of all merges again and again.
 *
 * A word is a list of symbols, bytes at first. Pairs of neighbours that can be joined wait in a heap, the earliest
 * merge first and of equals the leftmost; joining one makes two new pairs, and those that are gone are left in the heap
 * until they come up. So a word of n bytes costs n log n, however long it is.
 *
 * A few thousand words are most of a long text, so the ids of short words are kept in a table with one place per hash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tokenizer/bpe.h"
#include "tokenizer/unicode.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* The kind of the first character and its bytes; one that is not UTF-8 is a byte of no kind. */
static ls_char_kind kind_at(const char *text, size_t bytes, size_t *used)
{
	int32_t c = (unsigned char)*text;
	*used = c < 0x80 ? 1 : ls_char_decode(text, bytes, &c);
	if (*used)
		return ls_char_kind_of(c);
	*used = 1;
	return LS_KIND_OTHER;
}

static size_t contraction(const char *text, size_t bytes)
{
	static const char *const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
	for (size_t i = 0; *text == '\'' && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strlen(endings[i]) <= bytes && memcmp(text, endings[i], strlen(endings[i])) == 0)
			return strlen(endings[i]);
	return 0;
}

/* Bytes of the characters of one kind that text begins with; *last: of the last of them. */
static size_t run_of(const char *text, size_t bytes, ls_char_kind kind, size_t *last)
{
	size_t at = 0, used;
	while (at < bytes && kind_at(text + at, bytes - at, &used) == kind) {
		*last = used;
		at += used;
	}
	return at;
}

/* Spaces: all, but for the last one where a word follows. */
static size_t run_of_spaces(const char *text, size_t bytes)
{
	size_t last = 0, run = run_of(text, bytes, LS_KIND_SPACE, &last);
	return run < bytes && run > last ? run - last : run;
}

size_t ls_bpe_word(const char *text, size_t bytes)
{
	size_t used, behind = contraction(text, bytes), last;

	if (behind)
		return behind;
	size_t space = *text == ' ' && bytes > 1; /* that belongs to the word behind it */
	ls_char_kind kind = kind_at(text + space, bytes - space, &used);
	if (kind == LS_KIND_SPACE)
		return run_of_spaces(text, bytes);
	return space + run_of(text + space, bytes - space, kind, &last);
}

int ls_bpe_is_space(const char *word, size_t bytes)
{
	size_t last = 0;
	return run_of(word, bytes, LS_KIND_SPACE, &last) == bytes;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

typedef struct symbol {
	int32_t id; /* -1: it was joined to the one before it */
	int32_t before, behind;
} symbol;

typedef struct candidate {
	int32_t rank, at; /* symbol on the left */
	int32_t left, right, joined;
} candidate;

enum { KNOWN_BYTES = 24, KNOWN_IDS = 6, KNOWN_SLOTS = 1 << 15, KNOWN_FROM = 16 << 10 };

/* A short word that was encoded before. */
typedef struct known_word {
	uint64_t key[KNOWN_BYTES / 8]; /* its bytes, then zeros */
	uint8_t bytes, count;          /* bytes 0: an empty place */
	int32_t ids[KNOWN_IDS];
} known_word;

typedef struct encoder {
	const ls_bpe *bpe;
	known_word *known; /* (KNOWN_SLOTS); NULL: a short text, or no memory for it */
	symbol *symbols;
	size_t symbol_room;
	candidate *heap;
	size_t heap_count, heap_room;
	ls_tokens *tokens;
} encoder;

static int comes_before(const candidate *a, const candidate *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void swap(candidate *a, candidate *b)
{
	candidate kept = *a;
	*a = *b;
	*b = kept;
}

/* The pair of symbol `at` and the one behind it, if it can be joined. */
static ls_status push(encoder *e, int32_t at)
{
	const symbol *s = &e->symbols[at];
	candidate c = { .at = at, .left = s->id };

	if (s->behind < 0)
		return LS_OK;
	c.right = e->symbols[s->behind].id;
	if (!ls_bpe_merge_of(e->bpe, c.left, c.right, &c.rank, &c.joined))
		return LS_OK;
	LS_TRY(ls_array_grow(&e->heap, &e->heap_room, e->heap_count + 1, sizeof(*e->heap)));
	size_t i = e->heap_count++;
	e->heap[i] = c;
	for (; i && comes_before(&e->heap[i], &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&e->heap[i], &e->heap[(i - 1) / 2]);
	return LS_OK;
}

static candidate pop(encoder *e)
{
	candidate top = e->heap[0];
	e->heap[0] = e->heap[--e->heap_count];
	for (size_t i = 0, child; (child = 2 * i + 1) < e->heap_count; i = child) {
		if (child + 1 < e->heap_count && comes_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (!comes_before(&e->heap[child], &e->heap[i]))
			break;
		swap(&e->heap[i], &e->heap[child]);
	}
	return top;
}

static int is_there(const encoder *e, const candidate *c)
{
	const symbol *s = &e->symbols[c->at];
	return s->id == c->left && s->behind >= 0 && e->symbols[s->behind].id == c->right;
}

static ls_status join(encoder *e, const candidate *c)
{
	symbol *left = &e->symbols[c->at], *right = &e->symbols[left->behind];

	left->id = c->joined;
	right->id = -1;
	left->behind = right->behind;
	if (left->behind >= 0)
		e->symbols[left->behind].before = c->at;
	if (left->before >= 0)
		LS_TRY(push(e, left->before));
	return push(e, c->at);
}

static ls_status encode_word(encoder *e, const char *word, size_t bytes)
{
	LS_TRY(ls_array_grow(&e->symbols, &e->symbol_room, bytes, sizeof(*e->symbols)));
	for (size_t i = 0; i < bytes; i++)
		e->symbols[i] = (symbol){ .id = ls_bpe_byte(e->bpe, (uint8_t)word[i]),
					  .before = (int32_t)i - 1,
					  .behind = i + 1 < bytes ? (int32_t)i + 1 : -1 };
	e->heap_count = 0;
	for (size_t i = 0; i + 1 < bytes; i++)
		LS_TRY(push(e, (int32_t)i));
	while (e->heap_count) {
		candidate top = pop(e);
		if (is_there(e, &top))
			LS_TRY(join(e, &top));
	}
	for (int32_t i = 0; i >= 0; i = e->symbols[i].behind)
		LS_TRY(ls_tokens_add(e->tokens, e->symbols[i].id));
	return LS_OK;
}

/* The place of a word in the table; its key is written to `key`. */
static known_word *place_of(const encoder *e, const char *word, size_t bytes, uint64_t key[KNOWN_BYTES / 8])
{
	uint64_t hash = bytes;
	memset(key, 0, KNOWN_BYTES);
	memcpy(key, word, bytes);
	for (int i = 0; i < KNOWN_BYTES / 8; i++)
		hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
	return &e->known[hash % KNOWN_SLOTS];
}

static ls_status encode_known(encoder *e, const char *word, size_t bytes)
{
	uint64_t key[KNOWN_BYTES / 8];
	size_t first = e->tokens->count;

	if (!e->known || bytes > KNOWN_BYTES)
		return encode_word(e, word, bytes);
	known_word *place = place_of(e, word, bytes, key);
	if (place->bytes == bytes && memcmp(place->key, key, sizeof(key)) == 0) {
		for (int i = 0; i < place->count; i++)
			LS_TRY(ls_tokens_add(e->tokens, place->ids[i]));
		return LS_OK;
	}
	LS_TRY(encode_word(e, word, bytes));
	size_t count = e->tokens->count - first;
	if (count <= KNOWN_IDS) {
		memcpy(place->key, key, sizeof(key));
		memcpy(place->ids, e->tokens->ids + first, count * sizeof(*place->ids));
		place->bytes = (uint8_t)bytes;
		place->count = (uint8_t)count;
	}
	return LS_OK;
}

/* A word longer than this is cut: positions are 32-bit numbers. */
#define WORD_BYTES_MAX ((size_t)1 << 30)

static ls_status encode_words(encoder *e, const char *text, size_t bytes)
{
	for (size_t at = 0, word; at < bytes; at += word) {
		word = ls_bpe_word(text + at, bytes - at);
		word = word < WORD_BYTES_MAX ? word : WORD_BYTES_MAX;
		LS_TRY(encode_known(e, text + at, word));
	}
	return LS_OK;
}

static ls_status encode_characters(const ls_bpe *bpe, const char *text, size_t bytes, ls_tokens *to)
{
	for (size_t at = 0, used; at < bytes; at += used) {
		int32_t c = 0;
		used = ls_char_decode(text + at, bytes - at, &c);
		if (!used)
			return ls_fail(LS_EFORMAT, "byte %zu (0x%02x) is not UTF-8", at, (uint8_t)text[at]);
		int32_t id = ls_bpe_find(bpe, text + at, used);
		if (id < 0)
			return ls_fail(LS_EFORMAT, "byte %zu: the character U+%04X is not in the vocabulary", at,
				       (unsigned)c);
		LS_TRY(ls_tokens_add(to, id));
	}
	return LS_OK;
}

ls_status ls_bpe_encode(const ls_bpe *bpe, const char *text, size_t bytes, ls_tokens *append_to)
{
	size_t before = append_to->count;
	encoder e = { .bpe = bpe, .tokens = append_to };
	if (bytes >= KNOWN_FROM)
		e.known = calloc(KNOWN_SLOTS, sizeof(*e.known));
	ls_status status = ls_bpe_has_characters(bpe) ? encode_characters(bpe, text, bytes, append_to)
						      : encode_words(&e, text, bytes);

	free(e.known);
	free(e.symbols);
	free(e.heap);
	if (status != LS_OK)
		append_to->count = before;
	return status;
}
