/*
 * make_vocab.c - ls_vocab_make(): the words of all files counted, and a vocabulary learnt from the counts.
 */
#include <lockstep/text.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/progress_bar.h"
#include "base/status.h"
#include "data/readers/corpus.h"
#include "data/readers/sst.h"
#include "data/readers/table_files.h"
#include "tokenizer/learn_bpe.h"
#include "tokenizer/learn_vocab.h"

#define BLOCK (4u << 20) /* bytes counted between two looks at the clock */
#define PATIENCE 2.0     /* seconds without a progress bar */

typedef struct vocab_job {
	const ls_vocab_make_options *options;
	ls_learner *learner; /* or: */
	ls_bpe_learner *learner_bpe;
	uint64_t bytes; /* counted so far */
	double start;
	ls_progress_bar meter;
} vocab_job;

static void show(vocab_job *job, uint64_t done)
{
	if (ls_clock_seconds() - job->start > PATIENCE)
		ls_progress_bar_update(&job->meter, done);
}

static void show_pieces(void *context, size_t pieces)
{
	show(context, pieces);
}

/* Bytes of the next block: up to the last newline in it, for a word must not be cut. */
static size_t block_bytes(const char *text, size_t left)
{
	if (left <= BLOCK)
		return left;
	const char *newline = memrchr(text, '\n', BLOCK);
	if (!newline)
		newline = memchr(text + BLOCK, '\n', left - BLOCK);
	return newline ? (size_t)(newline - text) + 1 : left;
}

static ls_status add_text(vocab_job *job, const char *text, size_t bytes)
{
	return job->learner_bpe ? ls_bpe_learner_add(job->learner_bpe, text, bytes)
				: ls_learner_add(job->learner, text, bytes);
}

static uint64_t count_words(const vocab_job *job)
{
	return job->learner_bpe ? ls_bpe_learner_words(job->learner_bpe) : ls_learner_words(job->learner);
}

static ls_status count_text(vocab_job *job, const char *path, const char *text, size_t bytes)
{
	for (size_t at = 0, block; at < bytes; at += block) {
		block = block_bytes(text + at, bytes - at);
		ls_status status = add_text(job, text + at, block);
		if (status == LS_EFORMAT) { /* from the beginning of the file, for the byte's place in it */
			add_text(job, text, bytes);
			return ls_fail(status, "%s: %s%s", path, ls_last_error(),
				       job->learner_bpe ? "; options.bpe takes any bytes"
							: "; options.replace_invalid drops such bytes");
		}
		LS_TRY(status);
		job->bytes += block;
		show(job, job->bytes);
	}
	return LS_OK;
}

static ls_status count_file(vocab_job *job, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = count_text(job, path, (const char *)map.data, map.bytes);
	return ls_file_map_end(&map, status);
}

/* A treebank directory: the sentences of its training file, as text. */
static ls_status count_trees(vocab_job *job, const char *dir)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;
	uint64_t sentences;
	ls_file_map map;
	LS_TRY(ls_path_join(path, sizeof(path), dir, ls_sst_files[LS_SST_TRAIN].name));
	LS_TRY(ls_file_map_open(&map, path));
	FILE *to = open_memstream(&text, &bytes);
	ls_status status = to ? ls_sst_check((const char *)map.data, map.bytes, path, to, &sentences) : LS_OK;
	if ((!to || fclose(to) != 0) && !status)
		status = ls_fail(LS_EMEMORY, "no memory for the sentences of %s", path);
	status = ls_file_map_end(&map, status);
	if (!status)
		status = count_text(job, path, text, bytes);
	free(text);
	return status;
}

static ls_status count_rows(vocab_job *job, ls_table_walk *walk, const char *column)
{
	size_t at = ls_table_rows_find(walk->rows, column);
	ls_table_row row;
	int found = 1;

	if (at == ls_table_rows_columns(walk->rows))
		return ls_fail(LS_EINVALID, "%s has no column '%s' with text; name it with options.text_column",
			       walk->path, column);
	ls_table_rows_want(walk->rows, at);
	while (found) {
		LS_TRY(ls_table_walk_next(walk, &row, &found));
		if (!found)
			break;
		LS_TRY(add_text(job, row.field[at], row.bytes[at]));
		job->bytes += row.bytes[at];
	}
	return LS_OK;
}

/* A table: the column of text of its training rows. */
static ls_status count_table(vocab_job *job, const char *path)
{
	const char *column = job->options->text_column ? job->options->text_column : "text";
	ls_table_files files;
	ls_table_walk walk;

	LS_TRY(ls_table_files_find(&files, path));
	LS_TRY(ls_table_walk_begin(&walk, &files, LS_SPLIT_TRAIN, 0));
	ls_status status = count_rows(job, &walk, column);
	ls_table_walk_end(&walk);
	return status;
}

static ls_status count_files(vocab_job *job, const ls_corpus_files *files)
{
	ls_progress_bar_begin(&job->meter, "counting words", "MB", 1e6, job->bytes, job->bytes + files->bytes,
			      job->options->quiet);
	ls_status status = LS_OK;
	for (size_t i = 0; i < files->count && !status; i++)
		status = count_file(job, files->file[i].path);
	ls_progress_bar_end(&job->meter);
	return status;
}

static ls_status count_path(vocab_job *job, const char *path)
{
	ls_corpus_files files;
	if (ls_sst_is(path))
		return count_trees(job, path);
	if (ls_table_is(path))
		return count_table(job, path);
	LS_TRY(ls_corpus_find(&files, path));
	ls_status status = count_files(job, &files);
	ls_corpus_files_free(&files);
	return status;
}

static ls_status count_all(vocab_job *job)
{
	const ls_vocab_make_options *o = job->options;
	for (size_t i = 0; i < o->path_count; i++)
		LS_TRY(count_path(job, o->paths[i]));
	if (count_words(job) == 0)
		return ls_fail(LS_EFORMAT, "%s%s: no words in %" PRIu64 " bytes of text", o->paths[0],
			       o->path_count > 1 ? " and others" : "", job->bytes);
	return LS_OK;
}

static ls_status learn(vocab_job *job, ls_vocab **out)
{
	const ls_vocab_make_options *o = job->options;
	ls_learn_options learn_options = { .size = o->pieces,
					   .min_count = o->min_count,
					   .cased = o->cased,
					   .replace_invalid = o->replace_invalid,
					   .progress = show_pieces,
					   .context = job };
	LS_TRY(ls_learner_new(&job->learner, &learn_options));
	LS_TRY(count_all(job));
	ls_progress_bar_begin(&job->meter, "learning pieces", "k", 1e3, 0, o->pieces, o->quiet);
	ls_status status = ls_learner_finish(job->learner, out);
	ls_progress_bar_end(&job->meter);
	return status;
}

static ls_status learn_bpe(vocab_job *job, ls_bpe **out)
{
	const ls_vocab_make_options *o = job->options;
	ls_learn_bpe_options learn_options = { .size = o->pieces,
					       .min_count = o->min_count,
					       .characters = o->chars,
					       .progress = show_pieces,
					       .context = job };
	LS_TRY(ls_bpe_learner_new(&job->learner_bpe, &learn_options));
	LS_TRY(count_all(job));
	ls_progress_bar_begin(&job->meter, "learning pieces", "k", 1e3, 0, o->pieces, o->quiet);
	ls_status status = ls_bpe_learner_finish(job->learner_bpe, out);
	ls_progress_bar_end(&job->meter);
	return status;
}

/* A character that is left out could not be written any more. */
static ls_status check_size(const ls_vocab_make_options *o, size_t pieces)
{
	if (!o->chars || pieces <= o->pieces)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "the texts have %zu characters, the end of a text included, and options.size is %" PRIu64
		       ": give at least %zu, or use options.bpe",
		       pieces, o->pieces, pieces);
}

static ls_status make_bpe(vocab_job *job)
{
	const ls_vocab_make_options *o = job->options;
	ls_bpe *bpe = NULL;

	LS_TRY(ls_path_make(o->out));
	ls_status status = learn_bpe(job, &bpe);
	if (status == LS_OK)
		status = check_size(o, ls_bpe_size(bpe));
	if (status == LS_OK)
		status = ls_bpe_save(bpe, o->out);
	if (status == LS_OK && !o->quiet)
		ls_log_line("%s: %zu pieces from %" PRIu64 " %s, %.1f MB of text", o->out, ls_bpe_size(bpe),
			    count_words(job), o->chars ? "characters" : "words", (double)job->bytes * 1e-6);
	ls_bpe_free(bpe);
	ls_bpe_learner_free(job->learner_bpe);
	return status;
}

/* Check before the work that this file can be written. */
static ls_status check_out(const char *out)
{
	if (ls_path_is_directory(out))
		return ls_fail(LS_EINVALID, "%s is a directory; name the file to write, %s/vocab.txt say", out, out);
	return ls_file_check(out);
}

static ls_status save(const vocab_job *job, const ls_vocab *vocab)
{
	const ls_vocab_make_options *o = job->options;
	LS_TRY(ls_vocab_save(vocab, o->out));
	if (!o->quiet)
		ls_log_line("%s: %zu pieces from %" PRIu64 " words, %.1f MB of text", o->out, ls_vocab_size(vocab),
			    ls_learner_words(job->learner), (double)job->bytes * 1e-6);
	return LS_OK;
}

ls_status ls_vocab_make(const ls_vocab_make_options *options)
{
	const ls_vocab_make_options defaults = LS_VOCAB_MAKE_OPTIONS_INIT;
	ls_vocab_make_options own = defaults;
	vocab_job job = { .options = &own, .start = ls_clock_seconds() };
	ls_vocab *vocab = NULL;

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_VOCAB_MAKE_OPTIONS_INIT"));
	if (!own.path_count)
		return ls_fail(LS_EINVALID, "no text given to learn a vocabulary from");
	if (!own.out || !*own.out)
		return ls_fail(LS_EINVALID, "no output file given for the vocabulary");
	if (own.bpe && own.chars)
		return ls_fail(LS_EINVALID, "options.bpe and options.chars are two kinds of vocabulary: give one");
	if ((own.bpe || own.chars) && (own.cased || own.replace_invalid))
		return ls_fail(LS_EINVALID,
			       "options.%s is for WordPiece; vocabularies for GPT keep all that a text has",
			       own.cased ? "cased" : "replace_invalid");
	if (own.chars && own.min_count != 0 && own.min_count != defaults.min_count)
		return ls_fail(LS_EINVALID, "options.min_count is about joining pairs; options.chars joins none");
	if (own.bpe || own.chars)
		return make_bpe(&job);
	LS_TRY(check_out(own.out));
	ls_status status = learn(&job, &vocab);
	if (!status)
		status = save(&job, vocab);
	ls_vocab_free(vocab);
	ls_learner_free(job.learner);
	return status;
}
