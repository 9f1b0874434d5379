/*
 * vocab.c - pieces in one block of text, and a hash table over them.
 *
 * The hash of a text is FNV-1a, which goes byte by byte: one walk over a word gives the hashes of all its beginnings,
 * and "##" before it is only another value to start from. So the longest piece costs one walk and a probe for each
 * length; a slot keeps 32 bits of the hash, and text is compared where those agree.
 */
#include "tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/rng.h"
#include "tokenizer/basic_tokenizer.h"
#include "tokenizer/unicode.h"

typedef struct slot {
	uint32_t tag;
	int32_t id; /* -1: empty */
} slot;

struct ls_vocab {
	char *text;    /* every piece with a 0 behind it */
	size_t *begin; /* (size + 1) where it begins in text */
	size_t size;
	slot *table; /* (mask + 1), at most half full */
	size_t mask;
	size_t longest; /* bytes of the longest piece */
	ls_special special;
	uint64_t hash;
};

/* `file` is where pieces come from; NULL: an array. */
static ls_status refuse(const char *file, size_t id, const char *what)
{
	if (file)
		return ls_fail(LS_EFORMAT, "%s:%zu: %s", file, id + 1, what);
	return ls_fail(LS_EINVALID, "piece %zu of the vocabulary: %s", id, what);
}

static const uint64_t hash_of_nothing = 0xCBF29CE484222325;

static inline uint64_t hash_step(uint64_t hash, char byte)
{
	return (hash ^ (uint8_t)byte) * 0x100000001B3;
}

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = hash_step(hash, text[i]);
	return hash;
}

static size_t piece_bytes(const ls_vocab *vocab, int32_t id)
{
	return vocab->begin[id + 1] - vocab->begin[id] - 1;
}

static int piece_is(const ls_vocab *vocab, int32_t id, size_t skip, const char *text, size_t bytes)
{
	const char *piece = vocab->text + vocab->begin[id];
	return piece_bytes(vocab, id) == skip + bytes && (!skip || memcmp(piece, "##", 2) == 0) &&
	       memcmp(piece + skip, text, bytes) == 0;
}

/* The slot of the piece with this hash, or the empty one where it would be. Its text begins with `skip` bytes of ##. */
static slot *probe(const ls_vocab *vocab, uint64_t hash, size_t skip, const char *text, size_t bytes)
{
	uint64_t mixed = ls_mix64(hash);
	uint32_t tag = (uint32_t)(mixed >> 32);
	for (size_t i = mixed & vocab->mask;; i = (i + 1) & vocab->mask) {
		slot *s = &vocab->table[i];
		if (s->id < 0 || (s->tag == tag && piece_is(vocab, s->id, skip, text, bytes)))
			return s;
	}
}

int32_t ls_vocab_find(const ls_vocab *vocab, const char *piece, size_t bytes)
{
	return probe(vocab, hash_bytes(hash_of_nothing, piece, bytes), 0, piece, bytes)->id;
}

int32_t ls_vocab_longest(const ls_vocab *vocab, const char *text, size_t bytes, int continued, size_t *used)
{
	uint64_t hashes[LS_PIECE_BYTES_MAX + 1];
	size_t skip = continued ? 2 : 0, most = vocab->longest > skip ? vocab->longest - skip : 0;
	most = bytes < most ? bytes : most;
	hashes[0] = continued ? hash_bytes(hash_of_nothing, "##", 2) : hash_of_nothing;
	for (size_t i = 0; i < most; i++)
		hashes[i + 1] = hash_step(hashes[i], text[i]);
	for (size_t length = most; length > 0; length--) {
		if (length < bytes && ((uint8_t)text[length] & 0xC0) == 0x80)
			continue; /* inside a character */
		int32_t id = probe(vocab, hashes[length], skip, text, length)->id;
		if (id >= 0) {
			*used = length;
			return id;
		}
	}
	return -1;
}

/* --- making one --- */

static ls_status vocab_alloc(ls_vocab **out, size_t pieces, size_t bytes)
{
	ls_vocab *vocab = calloc(1, sizeof(*vocab));
	size_t slots = 16;
	while (slots < pieces * 2)
		slots *= 2;
	if (vocab) {
		vocab->text = malloc(bytes + pieces + 1);
		vocab->begin = malloc((pieces + 1) * sizeof(*vocab->begin));
		vocab->table = malloc(slots * sizeof(*vocab->table));
	}
	if (!vocab || !vocab->text || !vocab->begin || !vocab->table) {
		ls_vocab_free(vocab);
		return ls_fail(LS_EMEMORY, "no memory for a vocabulary of %zu pieces", pieces);
	}
	memset(vocab->table, 0xFF, slots * sizeof(*vocab->table)); /* ids of -1 */
	vocab->mask = slots - 1;
	vocab->begin[0] = 0;
	*out = vocab;
	return LS_OK;
}

void ls_vocab_free(ls_vocab *vocab)
{
	if (!vocab)
		return;
	free(vocab->text);
	free(vocab->begin);
	free(vocab->table);
	free(vocab);
}

static ls_status check_piece(const char *file, size_t id, const char *piece, size_t bytes)
{
	int32_t c;
	if (bytes == 0)
		return refuse(file, id, "an empty piece");
	if (bytes > LS_PIECE_BYTES_MAX)
		return refuse(file, id,
			      "a piece of more than 1000 bytes; is this a vocabulary with one piece per line?");
	for (size_t at = 0, used; at < bytes; at += used)
		if (piece[at] == 0 || !(used = ls_char_decode(piece + at, bytes - at, &c)))
			return refuse(file, id, piece[at] ? "not UTF-8" : "a byte of 0");
	return LS_OK;
}

static ls_status add_piece(ls_vocab *vocab, const char *file, const char *piece, size_t bytes)
{
	char what[128];
	size_t id = vocab->size, begin = vocab->begin[id];
	LS_TRY(check_piece(file, id, piece, bytes));
	uint64_t hash = hash_bytes(hash_of_nothing, piece, bytes);
	slot *s = probe(vocab, hash, 0, piece, bytes);
	if (s->id >= 0) {
		int shown = bytes < 40 ? (int)bytes : 40;
		snprintf(what, sizeof(what), "'%.*s' is already %s %d", shown, piece, file ? "line" : "piece",
			 file ? s->id + 1 : s->id);
		return refuse(file, id, what);
	}
	*s = (slot){ (uint32_t)(ls_mix64(hash) >> 32), (int32_t)id };
	memcpy(vocab->text + begin, piece, bytes);
	vocab->text[begin + bytes] = '\0';
	vocab->begin[id + 1] = begin + bytes + 1;
	vocab->longest = bytes > vocab->longest ? bytes : vocab->longest;
	vocab->size++;
	return LS_OK;
}

static ls_status find_specials(ls_vocab *vocab, const char *file)
{
	int32_t *ids[] = { &vocab->special.pad, &vocab->special.unk, &vocab->special.cls, &vocab->special.sep,
			   &vocab->special.mask };
	const char *text;
	for (size_t i = 0; (text = ls_special_text(i)); i++) {
		*ids[i] = ls_vocab_find(vocab, text, strlen(text));
		if (*ids[i] < 0)
			return ls_fail(LS_EFORMAT,
				       "%s: %s is missing among its %zu pieces; a vocabulary has it on a line "
				       "of its own",
				       file ? file : "vocabulary", text, vocab->size);
	}
	return LS_OK;
}

static ls_status hash_contents(ls_vocab *vocab)
{
	XXH64_state_t *state = XXH64_createState();
	if (!state)
		return ls_fail(LS_EMEMORY, "no memory to hash a vocabulary");
	XXH64_reset(state, 0);
	for (size_t id = 0; id < vocab->size; id++) {
		XXH64_update(state, vocab->text + vocab->begin[id], piece_bytes(vocab, (int32_t)id));
		XXH64_update(state, "\n", 1);
	}
	vocab->hash = XXH64_digest(state);
	XXH64_freeState(state);
	return LS_OK;
}

static ls_status finish(ls_vocab **out, ls_vocab *vocab, const char *file, ls_status status)
{
	if (status == LS_OK)
		status = find_specials(vocab, file);
	if (status == LS_OK)
		status = hash_contents(vocab);
	if (status != LS_OK) {
		ls_vocab_free(vocab);
		return status;
	}
	*out = vocab;
	return LS_OK;
}

ls_status ls_vocab_new(ls_vocab **out, const char *const *pieces, size_t count)
{
	ls_vocab *vocab;

	size_t bytes = 0;
	if (count > LS_VOCAB_PIECES_MAX)
		return ls_fail(LS_EINVALID, "a vocabulary of %zu pieces; at most %d", count, LS_VOCAB_PIECES_MAX);
	for (size_t i = 0; i < count; i++)
		bytes += strlen(pieces[i]);
	LS_TRY(vocab_alloc(&vocab, count, bytes));
	ls_status status = LS_OK;
	for (size_t i = 0; i < count && status == LS_OK; i++)
		status = add_piece(vocab, NULL, pieces[i], strlen(pieces[i]));
	return finish(out, vocab, NULL, status);
}

/* --- as a file --- */

static size_t count_lines(const char *text, size_t bytes)
{
	size_t lines = 1;
	for (const char *p = text; (p = memchr(p, '\n', bytes - (size_t)(p - text))); p++)
		lines++;
	return lines;
}

static ls_status add_lines(ls_vocab *vocab, const char *file, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		const char *line = text + at, *newline = memchr(line, '\n', bytes - at);
		size_t length = newline ? (size_t)(newline - line) : bytes - at;
		at += length + 1;
		if (length && line[length - 1] == '\r')
			length--;
		LS_TRY(add_piece(vocab, file, line, length));
	}
	return LS_OK;
}

ls_status ls_vocab_parse(ls_vocab **out, const char *text, size_t bytes, const char *name)
{
	ls_vocab *vocab;

	while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
		bytes--;
	if (bytes == 0)
		return ls_fail(LS_EFORMAT, "%s: empty; a vocabulary has one piece per line", name);
	if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
		return ls_fail(LS_EFORMAT, "%s:1: begins with a byte order mark; remove its three bytes", name);
	size_t lines = count_lines(text, bytes);
	if (lines > LS_VOCAB_PIECES_MAX)
		return ls_fail(LS_EFORMAT, "%s: %zu lines; a vocabulary has at most %d", name, lines,
			       LS_VOCAB_PIECES_MAX);
	LS_TRY(vocab_alloc(&vocab, lines, bytes));
	return finish(out, vocab, name, add_lines(vocab, name, text, bytes));
}

ls_status ls_vocab_load(ls_vocab **out, const char *path)
{
	ls_file_map map;

	if (ls_path_is_directory(path))
		return ls_fail(LS_EINVALID,
			       "%s is a directory without vocab.json and merges.txt, as GPT-2 has them; of other "
			       "models name the vocab.txt itself",
			       path);
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_vocab_parse(out, (const char *)map.data, map.bytes, path);
	ls_file_map_close(&map);
	return status;
}

static ls_status write_pieces(const ls_vocab *vocab, ls_file_draft *draft)
{
	for (size_t id = 0; id < vocab->size; id++) {
		LS_TRY(ls_file_write(draft, vocab->text + vocab->begin[id], piece_bytes(vocab, (int32_t)id)));
		LS_TRY(ls_file_write(draft, "\n", 1));
	}
	return LS_OK;
}

ls_status ls_vocab_save(const ls_vocab *vocab, const char *path)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	return ls_file_finish(&draft, write_pieces(vocab, &draft));
}

size_t ls_vocab_size(const ls_vocab *vocab)
{
	return vocab->size;
}

const char *ls_vocab_piece(const ls_vocab *vocab, int32_t id)
{
	return id >= 0 && (size_t)id < vocab->size ? vocab->text + vocab->begin[id] : NULL;
}

const ls_special *ls_vocab_special(const ls_vocab *vocab)
{
	return &vocab->special;
}

uint64_t ls_vocab_hash(const ls_vocab *vocab)
{
	return vocab->hash;
}
