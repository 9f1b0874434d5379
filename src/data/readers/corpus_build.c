/*
 * corpus_build.c - tokenizing a corpus, on all cores.
 *
 * One thread maps files and cuts them into sentences, which is quick; a team tokenizes batches of sentences, which is
 * slow; they are written in the order of the text. So what is written does not depend on how many threads there are,
 * and memory holds one round of batches, never the corpus. Sentence offsets go to a second draft, which is appended to
 * the tokens at the end.
 *
 * For language models, whose vocabulary keeps white space, a "sentence" is a block of text, and every file a document.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "base/status.h"
#include "base/team.h"
#include "data/readers/corpus.h"
#include "data/readers/sentences.h"
#include "tokenizer/unicode.h"

#define BATCH_BYTES ((size_t)256 << 10)
#define BLOCK_BYTES ((size_t)64 << 10)
#define BLOCK_BYTES_MAX ((size_t)256 << 10)
#define BATCH_SENTENCES 4096
#define BATCHES_A_THREAD 8
#define THREADS_MAX 256
#define PATIENCE 2.0 /* seconds before progress is shown */

/* Consecutive sentences of a file. */
typedef struct bundle {
	const ls_corpus_file *file;
	ls_file_map map; /* closed behind the last batch of the file */
	int last;
	ls_sentence *sentences; /* (BATCH_SENTENCES) */
	size_t count;
	ls_tokens tokens; /* of all of them */
	uint32_t *length; /* (count) tokens */
	ls_status status;
	char error[512];
} bundle;

typedef struct build {
	const ls_corpus_files *files;
	const ls_tokenizer *tokenizer;
	int wide, threads;
	ls_team *team;
	bundle *batches;
	int batch_count, filled;
	/* reading: the next sentence is of this file */
	size_t next_file;
	int open;
	ls_file_map map;
	ls_sentence_reader prose;
	/* writing */
	ls_file_draft out, offsets;
	ls_corpus_counts counts;
	int start_pending; /* a document has begun, and had no token yet */
	uint64_t *document;
	size_t document_room;
	XXH64_state_t *hash; /* of all tokens */
	void *narrow;        /* a batch's tokens as they are written */
	size_t narrow_room;
	/* progress */
	ls_progress_bar meter;
	double begun;
	int noted;
	uint64_t done; /* bytes */
} build;

/* Take the next file that has bytes. */
static ls_status next_file(build *b)
{
	while (!b->open && b->next_file < b->files->count) {
		const ls_corpus_file *file = &b->files->file[b->next_file++];
		LS_TRY(ls_file_map_open(&b->map, file->path));
		if (b->tokenizer->bpe)
			b->prose = (ls_sentence_reader){ .text = (const char *)b->map.data,
							 .bytes = b->map.bytes,
							 .starts = 1 };
		else
			ls_sentence_reader_begin(&b->prose, (const char *)b->map.data, b->map.bytes,
						 b->files->count == 1);
		b->open = b->map.bytes > 0;
		b->counts.files++;
	}
	return LS_OK;
}

static int is_space(const char *text, size_t bytes)
{
	int32_t c;
	return bytes > 0 && ls_char_decode(text, bytes, &c) == bytes && ls_char_kind_of(c) == LS_KIND_SPACE;
}

/* No word goes on behind text[at - 1], a newline between two characters that are not spaces. */
static int ends_line(const char *text, size_t bytes, size_t at)
{
	if (at < 2 || text[at - 1] != '\n')
		return 0;
	for (size_t length = 1; length <= 4; length++)
		if ((at > length && is_space(text + at - 1 - length, length)) ||
		    (at + length <= bytes && is_space(text + at, length)))
			return 0;
	return 1;
}

/* The end of a word that is no space, at least `least` bytes from `begin` on, where a word begins. */
static size_t word_end(const char *text, size_t bytes, size_t begin, size_t least)
{
	size_t at = begin;
	for (int was_space = 1; at < bytes && (at - begin < least || was_space);) {
		size_t word = ls_bpe_word(text + at, bytes - at);
		was_space = ls_bpe_is_space(text + at, word);
		at += word;
	}
	return at;
}

/* A block for byte-pair encoding: it ends with a line or, where lines are very long, with a word. */
static int next_block(ls_sentence_reader *r, ls_sentence *out)
{
	size_t at = r->at + BLOCK_BYTES, limit = r->at + BLOCK_BYTES_MAX;

	if (r->at >= r->bytes)
		return 0;
	while (at < r->bytes && at < limit && !ends_line(r->text, r->bytes, at))
		at++;
	if (at >= limit && at < r->bytes)
		at = word_end(r->text, r->bytes, r->at, BLOCK_BYTES);
	size_t end = at < r->bytes ? at : r->bytes;
	*out = (ls_sentence){ .begin = r->at, .bytes = end - r->at, .first = r->starts };
	r->at = end;
	r->starts = 0;
	return 1;
}

static int next_sentence(build *b, ls_sentence *out)
{
	return b->tokenizer->bpe ? next_block(&b->prose, out) : ls_sentence_reader_next(&b->prose, out);
}

static void fill_batch(build *b, bundle *batch)
{
	size_t begin = b->prose.at;
	batch->file = &b->files->file[b->next_file - 1];
	batch->map = b->map;
	batch->count = 0;
	batch->last = 0;
	while (batch->count < BATCH_SENTENCES && b->prose.at - begin < BATCH_BYTES && !batch->last) {
		batch->last = !next_sentence(b, &batch->sentences[batch->count]);
		batch->count += !batch->last;
	}
	b->open = !batch->last;
	b->done += b->prose.at - begin;
}

/* Fill as many batches as there are. */
static ls_status fill_round(build *b)
{
	b->filled = 0;
	while (b->filled < b->batch_count) {
		LS_TRY(next_file(b));
		if (!b->open)
			return LS_OK;
		fill_batch(b, &b->batches[b->filled++]);
	}
	return LS_OK;
}

/* A document begins with the end of the one before it. */
static ls_status encode_block(const build *b, bundle *batch, size_t i)
{
	const ls_sentence *s = &batch->sentences[i];
	const ls_bpe *bpe = b->tokenizer->bpe;
	size_t before = batch->tokens.count;

	if (s->first && ls_bpe_end(bpe) >= 0)
		LS_TRY(ls_tokens_add(&batch->tokens, ls_bpe_end(bpe)));
	ls_status status = ls_bpe_encode(bpe, (const char *)batch->map.data + s->begin, s->bytes, &batch->tokens);
	if (status == LS_EFORMAT)
		return ls_fail_context(status, "%s, text from byte %zu on", batch->file->path, s->begin);
	if (status == LS_OK && batch->tokens.count - before > UINT32_MAX)
		return ls_fail(LS_EFORMAT, "%s: a word of %zu bytes is too long", batch->file->path, s->bytes);
	batch->length[i] = (uint32_t)(batch->tokens.count - before);
	return status;
}

static ls_status encode_sentence(const build *b, bundle *batch, size_t i)
{
	if (b->tokenizer->bpe)
		return encode_block(b, batch, i);
	const ls_sentence *s = &batch->sentences[i];
	const char *text = (const char *)batch->map.data + s->begin;
	size_t before = batch->tokens.count;
	ls_status status = ls_wordpiece_encode(b->tokenizer->wordpiece, text, s->bytes, &batch->tokens);
	size_t bad = status == LS_EFORMAT ? ls_text_invalid(text, s->bytes) : s->bytes;
	if (bad < s->bytes)
		return ls_fail(LS_EFORMAT,
			       "%s: byte %zu (0x%02x) is not UTF-8: convert the file, or replace such bytes "
			       "with options.replace_invalid",
			       batch->file->path, s->begin + bad, (unsigned char)text[bad]);
	LS_TRY(status);
	batch->length[i] = (uint32_t)(batch->tokens.count - before);
	return LS_OK;
}

static void encode_batch(const build *b, bundle *batch)
{
	batch->status = LS_OK;
	batch->tokens.count = 0;
	for (size_t i = 0; i < batch->count && !batch->status; i++)
		batch->status = encode_sentence(b, batch, i);
	if (batch->status)
		snprintf(batch->error, sizeof(batch->error), "%s", ls_last_error());
}

static void encode_round(void *context, ls_member member)
{
	build *b = context;
	int64_t unit;
	while ((unit = ls_team_next(member, b->filled)) >= 0)
		encode_batch(b, &b->batches[unit]);
}

static ls_status write_tokens(build *b, const bundle *batch)
{
	size_t width = b->wide ? 4 : 2;
	LS_TRY(ls_array_grow(&b->narrow, &b->narrow_room, batch->tokens.count * width, 1));
	for (size_t i = 0; i < batch->tokens.count; i++) {
		int32_t id = batch->tokens.ids[i];
		b->counts.unknown += id == b->tokenizer->special.unk;
		if (b->wide)
			((uint32_t *)b->narrow)[i] = (uint32_t)id;
		else
			((uint16_t *)b->narrow)[i] = (uint16_t)id;
	}
	XXH64_update(b->hash, b->narrow, batch->tokens.count * width);
	return ls_file_write(&b->out, b->narrow, batch->tokens.count * width);
}

static ls_status write_offsets(build *b, const bundle *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		b->start_pending |= batch->sentences[i].first;
		b->counts.bytes += batch->sentences[i].bytes;
		if (!batch->length[i])
			continue;
		if (b->start_pending) {
			LS_TRY(ls_array_grow(&b->document, &b->document_room, b->counts.documents + 2,
					     sizeof(uint64_t)));
			b->document[b->counts.documents++] = b->counts.sentences;
			b->start_pending = 0;
		}
		LS_TRY(ls_file_write(&b->offsets, &b->counts.tokens, sizeof(uint64_t)));
		b->counts.sentences++;
		b->counts.tokens += batch->length[i];
	}
	return LS_OK;
}

static ls_status write_round(build *b)
{
	for (int i = 0; i < b->filled; i++) {
		bundle *batch = &b->batches[i];
		if (batch->status)
			return ls_fail(batch->status, "%s", batch->error);
		LS_TRY(write_tokens(b, batch));
		LS_TRY(write_offsets(b, batch));
	}
	return LS_OK;
}

/* Files that ended in this round. The one that goes on is still b->map. */
static ls_status close_maps(build *b, ls_status status)
{
	for (int i = 0; i < b->filled; i++)
		if (b->batches[i].last)
			status = ls_file_map_end(&b->batches[i].map, status);
	b->filled = 0;
	return status;
}

static void show_progress(build *b)
{
	if (ls_clock_seconds() - b->begun < PATIENCE)
		return;
	if (!b->noted && !b->meter.on)
		ls_log_note("tokenizing %.1f MB of text, once", (double)b->files->bytes / 1e6);
	b->noted = 1;
	ls_progress_bar_update(&b->meter, b->done);
}

static ls_status run_rounds(build *b)
{
	do {
		ls_status status = fill_round(b);
		if (!status && b->filled)
			ls_team_run(b->team, encode_round, b);
		if (!status)
			status = write_round(b);
		int all = b->filled;
		LS_TRY(close_maps(b, status));
		if (!all)
			return LS_OK;
		show_progress(b);
	} while (1);
}

/* Padding, sentences and documents behind the tokens; the header last, in front. */
static ls_status write_rest(build *b, uint64_t key)
{
	static const uint8_t zero[8];
	uint8_t header[LS_CORPUS_HEADER];
	ls_file_map map;
	uint64_t bytes = b->counts.tokens * (b->wide ? 4 : 2);
	LS_TRY(ls_file_write(&b->out, zero, (size_t)(ls_corpus_token_bytes(b->counts.tokens, b->wide) - bytes)));
	LS_TRY(ls_file_write(&b->offsets, &b->counts.tokens, sizeof(uint64_t)));
	if (fflush(b->offsets.stream) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", b->offsets.draft);
	LS_TRY(ls_file_map_open(&map, b->offsets.draft));
	ls_status status = ls_file_write(&b->out, map.data, map.bytes);
	ls_file_map_close(&map);
	LS_TRY(status);
	b->document[b->counts.documents] = b->counts.sentences;
	LS_TRY(ls_file_write(&b->out, b->document, (b->counts.documents + 1) * sizeof(uint64_t)));
	ls_corpus_encode(header, key, XXH64_digest(b->hash), b->wide, &b->counts);
	if (fseeko(b->out.stream, 0, SEEK_SET) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", b->out.draft);
	return ls_file_write(&b->out, header, sizeof(header));
}

static ls_status write_all(build *b, uint64_t key)
{
	const uint8_t header[LS_CORPUS_HEADER] = { 0 };
	LS_TRY(ls_file_write(&b->out, header, sizeof(header)));
	LS_TRY(run_rounds(b));
	if (b->counts.tokens == 0)
		return ls_fail(LS_EFORMAT, "the corpus is empty: there is no word in %s%s", b->files->file[0].path,
			       b->files->count > 1 ? " and the other files" : "");
	return write_rest(b, key);
}

static ls_status allocate(build *b)
{
	b->batch_count = b->threads * BATCHES_A_THREAD;
	b->batches = calloc((size_t)b->batch_count, sizeof(*b->batches));
	for (int i = 0; b->batches && i < b->batch_count; i++) {
		b->batches[i].sentences = malloc(BATCH_SENTENCES * sizeof(ls_sentence));
		b->batches[i].length = malloc(BATCH_SENTENCES * sizeof(uint32_t));
		if (!b->batches[i].sentences || !b->batches[i].length)
			return ls_fail(LS_EMEMORY, "no memory to tokenize the corpus");
	}
	b->hash = XXH64_createState();
	if (!b->batches || !b->hash)
		return ls_fail(LS_EMEMORY, "no memory to tokenize the corpus");
	XXH64_reset(b->hash, 0);
	return ls_team_new(&b->team, b->threads);
}

static void release(build *b)
{
	if (b->team)
		ls_team_free(b->team);
	for (int i = 0; b->batches && i < b->batch_count; i++) {
		free(b->batches[i].sentences);
		free(b->batches[i].length);
		ls_tokens_free(&b->batches[i].tokens);
	}
	if (b->open)
		ls_file_map_close(&b->map);
	XXH64_freeState(b->hash);
	free(b->batches);
	free(b->document);
	free(b->narrow);
}

static ls_status write_drafts(build *b, const char *path, uint64_t key)
{
	char beside[4096];
	if ((size_t)snprintf(beside, sizeof(beside), "%s.sentences", path) >= sizeof(beside))
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	LS_TRY(ls_file_begin(&b->out, path));
	ls_status status = ls_file_begin(&b->offsets, beside);
	if (!status) {
		status = write_all(b, key);
		ls_file_abandon(&b->offsets);
	}
	return ls_file_finish(&b->out, status);
}

/* As many as this process may use. */
static int count_threads(int wanted)
{
	ls_processors allowed;
	if (wanted < 1) {
		ls_cores_allowed(&allowed);
		int cores = ls_cores_count("", &allowed), quota = ls_cores_quota("");
		wanted = cores < quota ? cores : quota;
	}
	return wanted < 1 ? 1 : wanted < THREADS_MAX ? wanted : THREADS_MAX;
}

ls_status ls_corpus_build(const char *path, const ls_corpus_files *files, const ls_tokenizer *tokenizer, uint64_t key,
			  int threads)
{
	build b = { .files = files,
		    .tokenizer = tokenizer,
		    .wide = ls_tokenizer_size(tokenizer) > 65536,
		    .threads = count_threads(threads),
		    .begun = ls_clock_seconds() };
	ls_progress_bar_begin(&b.meter, "tokenizing", "MB", 1e6, 0, files->bytes, 0);
	ls_status status = allocate(&b);
	if (!status)
		status = write_drafts(&b, path, key);
	ls_progress_bar_end(&b.meter);
	release(&b);
	return status;
}
