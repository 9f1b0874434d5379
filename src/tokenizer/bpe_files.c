/*
 * bpe_files.c - vocab.json and merges.txt: read, checked and written.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/names.h"
#include "tokenizer/bpe_state.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)
enum { MADE_VISIBLE = 0x100 };

/* The character that stands for a byte in files: itself, or the next one from U+0100 on. */
static int32_t shown_as(uint8_t byte)
{
	int32_t hidden = MADE_VISIBLE;
	if (ls_bpe_is_visible(byte))
		return byte;
	for (int other = 0; other < byte; other++)
		hidden += !ls_bpe_is_visible(other);
	return hidden;
}

/* The byte that a character stands for; -1: none. Hidden bytes lie in three stretches: 0x00-0x20, 0x7f-0xa0, 0xad. */
static int byte_of(int32_t c)
{
	int32_t hidden = c - MADE_VISIBLE;

	if (ls_bpe_is_visible(c))
		return c;
	if (hidden < 0)
		return -1;
	if (hidden < 0x21)
		return hidden;
	if (hidden < 0x21 + 0x22)
		return hidden - 0x21 + 0x7f;
	return hidden == 0x21 + 0x22 ? 0xad : -1;
}

/* Without merges each piece is one character, but for the end of a text. */
static ls_status check_characters(const ls_bpe *bpe, const char *name)
{
	for (size_t id = 0; id < bpe->count; id++) {
		int32_t c;
		const char *text = bpe->text + bpe->begin[id];
		size_t bytes = ls_bpe_piece_bytes(bpe, id);
		if ((int32_t)id != bpe->end && (bytes == 0 || ls_char_decode(text, bytes, &c) != bytes))
			return ls_fail(LS_EFORMAT,
				       "%s: piece %zu is not one character, and there is no " LS_BPE_MERGES
				       " beside it",
				       name, id);
	}
	return LS_OK;
}

/* The bytes that a piece of a file stands for; returns their number, SIZE_MAX if it is none. */
static size_t read_piece(const char *shown, size_t bytes, char *out)
{
	size_t count = 0;
	for (size_t at = 0, used; at < bytes; at += used) {
		int32_t c;
		if (count == LS_BPE_PIECE_BYTES_MAX || !(used = ls_char_decode(shown + at, bytes - at, &c)) ||
		    byte_of(c) < 0)
			return SIZE_MAX;
		out[count++] = (char)byte_of(c);
	}
	return count ? count : SIZE_MAX;
}

/* Pieces by id: every number from 0 on is there once. */
static ls_status sort_pieces(json_t *root, const char **shown, size_t count, const char *name)
{
	const char *key;
	json_t *value;
	char printable[64], other[64];

	json_object_foreach(root, key, value)
	{
		json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
		ls_text_printable(printable, sizeof(printable), key);
		if (id >= 0 && (uint64_t)id < count && shown[id])
			ls_text_printable(other, sizeof(other), shown[id]);
		if (id < 0 || (uint64_t)id >= count)
			return ls_fail(LS_EFORMAT, "%s: the number of piece '%s' is not in 0..%zu", name, printable,
				       count - 1);
		if (shown[id])
			return ls_fail(LS_EFORMAT, "%s: pieces '%s' and '%s' have the same number, %lld", name, other,
				       printable, (long long)id);
		shown[id] = key;
	}
	return LS_OK;
}

static ls_status read_pieces(ls_bpe *bpe, json_t *root, const char *name)
{
	char bytes[LS_BPE_PIECE_BYTES_MAX], printable[64];
	size_t count = json_object_size(root);

	if (!json_is_object(root) || count == 0)
		return ls_fail(LS_EFORMAT, "%s is not a vocabulary: an object of tokens and their numbers", name);
	if (count > LS_VOCAB_PIECES_MAX)
		return ls_fail(LS_EFORMAT, "%s has %zu tokens; a vocabulary has at most %d", name, count,
			       LS_VOCAB_PIECES_MAX);
	const char **shown = calloc(count, sizeof(*shown));
	ls_status status = shown ? sort_pieces(root, shown, count, name)
				 : ls_fail(LS_EMEMORY, "no memory for a vocabulary of %zu pieces", count);
	for (size_t id = 0; id < count && status == LS_OK; id++) {
		size_t length = read_piece(shown[id], strlen(shown[id]), bytes);
		status = length == SIZE_MAX
				 ? ls_fail(LS_EFORMAT,
					   "%s: piece %zu, '%s', is empty, too long, or has a character that stands "
					   "for no byte",
					   name, id, ls_text_printable(printable, sizeof(printable), shown[id]))
				 : ls_bpe_add_piece(bpe, bytes, length);
	}
	free(shown);
	return status;
}

static ls_status parse_vocab(ls_bpe *bpe, const char *text, size_t bytes, const char *name)
{
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return ls_fail(LS_EFORMAT, "%s:%d: %s", name, error.line > 0 ? error.line : 1,
			       bytes > 0 ? error.text : "the file is empty");
	ls_status status = read_pieces(bpe, root, name);
	json_decref(root);
	return status == LS_OK ? ls_bpe_index_pieces(bpe, name) : status;
}

/* "Ġ t": two pieces. */
static ls_status parse_merge(ls_bpe *bpe, const char *line, size_t bytes, const char *name, size_t number)
{
	char piece[LS_BPE_PIECE_BYTES_MAX];
	const char *space = memchr(line, ' ', bytes);
	int32_t ids[2] = { -1, -1 };

	for (int k = 0; space && k < 2; k++) {
		const char *shown = k ? space + 1 : line;
		size_t length = read_piece(shown, k ? bytes - (size_t)(shown - line) : (size_t)(space - line), piece);
		ids[k] = length == SIZE_MAX ? -1 : ls_bpe_find(bpe, piece, length);
	}
	if (ids[0] < 0 || ids[1] < 0)
		return ls_fail(LS_EFORMAT, "%s:%zu: not two pieces of the vocabulary with a space between them", name,
			       number);
	return ls_bpe_add_merge(bpe, ids[0], ids[1], name, number);
}

static ls_status parse_merges(ls_bpe *bpe, const char *text, size_t bytes, const char *name)
{
	size_t number = 0;
	for (size_t at = 0, length; at < bytes; at += length + 1) {
		const char *line = text + at, *newline = memchr(line, '\n', bytes - at);
		length = newline ? (size_t)(newline - line) : bytes - at;
		size_t used = length && line[length - 1] == '\r' ? length - 1 : length;
		int is_version = ++number == 1 && used >= 9 && memcmp(line, "#version:", 9) == 0;
		if (used && !is_version)
			LS_TRY(parse_merge(bpe, line, used, name, number));
	}
	return ls_bpe_index_merges(bpe, name);
}

static ls_status parse(ls_bpe *bpe, const char *vocab, size_t vocab_bytes, const char *vocab_name, const char *merges,
		       size_t merges_bytes, const char *merges_name)
{
	LS_TRY(parse_vocab(bpe, vocab, vocab_bytes, vocab_name));
	if (!merges)
		return check_characters(bpe, vocab_name);
	LS_TRY(ls_bpe_check_bytes(bpe, vocab_name));
	return parse_merges(bpe, merges, merges_bytes, merges_name);
}

ls_status ls_bpe_parse(ls_bpe **out, const char *vocab, size_t vocab_bytes, const char *vocab_name, const char *merges,
		       size_t merges_bytes, const char *merges_name)
{
	ls_bpe *bpe = ls_bpe_alloc();
	if (!bpe)
		return LS_EMEMORY;
	return ls_bpe_finish(out, bpe, parse(bpe, vocab, vocab_bytes, vocab_name, merges, merges_bytes, merges_name));
}

/* The directory that a file is in. */
static void directory_of(char *out, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');
	snprintf(out, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* `path` itself, or the vocab.json of a directory; and the merges.txt beside it. */
static ls_status find_files(char *vocab, char *merges, size_t size, const char *path)
{
	char home[4096];

	if (strlen(path) >= sizeof(home))
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	snprintf(home, sizeof(home), "%s", path);
	if (ls_path_is_directory(path)) {
		LS_TRY(ls_path_join(vocab, size, path, LS_BPE_VOCAB));
	} else {
		snprintf(vocab, size, "%s", path);
		directory_of(home, sizeof(home), path);
	}
	return ls_path_join(merges, size, home, LS_BPE_MERGES);
}

int ls_bpe_is(const char *path)
{
	char inside[4096];
	if (strcmp(path, LS_BPE_BYTES) == 0)
		return 1;
	if (!ls_path_is_directory(path))
		return ls_text_ends_with(path, ".json");
	return ls_path_join(inside, sizeof(inside), path, LS_BPE_VOCAB) == LS_OK && ls_path_exists(inside);
}

static ls_status open_limited(ls_file_map *map, const char *path)
{
	LS_TRY(ls_file_map_open(map, path));
	if (map->bytes <= FILE_BYTES_MAX)
		return LS_OK;
	ls_file_map_close(map);
	return ls_fail(LS_EFORMAT, "%s is too large for a vocabulary", path);
}

static ls_status load_files(ls_bpe **out, const char *vocab_path, const char *merges_path)
{
	ls_file_map vocab, merges = { 0 };
	int has_merges = ls_path_exists(merges_path);

	LS_TRY(open_limited(&vocab, vocab_path));
	ls_status status = has_merges ? open_limited(&merges, merges_path) : LS_OK;
	has_merges = has_merges && status == LS_OK;
	const char *text = has_merges ? (merges.bytes ? (const char *)merges.data : "") : NULL;
	if (status == LS_OK)
		status = ls_bpe_parse(out, (const char *)vocab.data, vocab.bytes, vocab_path, text, merges.bytes,
				      merges_path);
	if (has_merges)
		ls_file_map_close(&merges);
	ls_file_map_close(&vocab);
	return status;
}

ls_status ls_bpe_load(ls_bpe **out, const char *path)
{
	char vocab[4096], merges[4096];

	if (strcmp(path, LS_BPE_BYTES) == 0)
		return ls_bpe_new_bytes(out);
	LS_TRY(find_files(vocab, merges, sizeof(vocab), path));
	return load_files(out, vocab, merges);
}

/* A piece as files have it: up to two bytes for each of its own. */
static size_t show_piece(const ls_bpe *bpe, size_t id, char *out)
{
	size_t used = 0;
	for (size_t i = bpe->begin[id]; i < bpe->begin[id + 1]; i++)
		used += ls_char_encode(shown_as((uint8_t)bpe->text[i]), out + used);
	return used;
}

/* In JSON, where only " and \ need care: other characters are visible. */
static ls_status write_json_piece(const ls_bpe *bpe, ls_file_draft *to, size_t id, char *shown)
{
	size_t used = show_piece(bpe, id, shown);
	char number[32];

	LS_TRY(ls_file_write(to, id ? ", \"" : "{\"", id ? 3 : 2));
	for (size_t i = 0; i < used; i++) {
		if (shown[i] == '"' || shown[i] == '\\')
			LS_TRY(ls_file_write(to, "\\", 1));
		LS_TRY(ls_file_write(to, shown + i, 1));
	}
	snprintf(number, sizeof(number), "\": %zu", id);
	return ls_file_write(to, number, strlen(number));
}

static ls_status write_vocab(const ls_bpe *bpe, ls_file_draft *to, char *shown)
{
	for (size_t id = 0; id < bpe->count; id++)
		LS_TRY(write_json_piece(bpe, to, id, shown));
	return ls_file_write(to, "}\n", 2);
}

static ls_status write_merges(const ls_bpe *bpe, ls_file_draft *to, char *shown)
{
	static const char first[] = "#version: 0.2\n";
	LS_TRY(ls_file_write(to, first, strlen(first)));
	for (size_t i = 0; i < bpe->merge_count; i++) {
		LS_TRY(ls_file_write(to, shown, show_piece(bpe, (size_t)bpe->merges[i].left, shown)));
		LS_TRY(ls_file_write(to, " ", 1));
		LS_TRY(ls_file_write(to, shown, show_piece(bpe, (size_t)bpe->merges[i].right, shown)));
		LS_TRY(ls_file_write(to, "\n", 1));
	}
	return LS_OK;
}

static ls_status save_as(const ls_bpe *bpe, const char *directory, const char *name,
			 ls_status (*write)(const ls_bpe *, ls_file_draft *, char *), char *shown)
{
	char path[4096];
	ls_file_draft draft;
	LS_TRY(ls_path_join(path, sizeof(path), directory, name));
	LS_TRY(ls_file_begin(&draft, path));
	return ls_file_finish(&draft, write(bpe, &draft, shown));
}

/* Those of an older vocabulary. */
static ls_status remove_merges(const char *directory)
{
	char path[4096];
	LS_TRY(ls_path_join(path, sizeof(path), directory, LS_BPE_MERGES));
	if (unlink(path) != 0 && errno != ENOENT)
		return ls_fail_errno(LS_EIO, "cannot remove %s", path);
	return LS_OK;
}

ls_status ls_bpe_save(const ls_bpe *bpe, const char *directory)
{
	char *shown = malloc(2 * LS_BPE_PIECE_BYTES_MAX);
	if (!shown)
		return ls_fail(LS_EMEMORY, "no memory to write a vocabulary");
	ls_status status = ls_bpe_has_characters(bpe) ? remove_merges(directory)
						      : save_as(bpe, directory, LS_BPE_MERGES, write_merges, shown);
	if (status == LS_OK) /* last: where it is, the vocabulary is complete */
		status = save_as(bpe, directory, LS_BPE_VOCAB, write_vocab, shown);
	free(shown);
	return status;
}
