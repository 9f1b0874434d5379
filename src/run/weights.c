#include "run/weights.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "data/normalise.h"
#include "run/settings.h"

/* RUN/ckpt/step-N lies two below its run. */
static ls_status find_run(ls_weights *w)
{
	char path[PATH_MAX];
	if (!realpath(w->checkpoint, path))
		return ls_fail_errno(LS_EIO, "cannot find where %s leads", w->checkpoint);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');
		slash[slash == path] = '\0';
	}
	if ((size_t)snprintf(w->run, sizeof(w->run), "%s", path) >= sizeof(w->run))
		return ls_fail(LS_EINVALID, "the path %s is too long", path);
	return LS_OK;
}

static ls_status find_in_run(ls_weights *w)
{
	LS_TRY(ls_ckpt_newest(w->run, w->checkpoint, sizeof(w->checkpoint)));
	return ls_path_join(w->file, sizeof(w->file), w->checkpoint, "model.safetensors");
}

/* The files of a run that describe it have no weights. */
static ls_status check_file(const char *source)
{
	char run[4096];
	const char *dot = strrchr(source, '.');

	if (!dot || (strcmp(dot, ".json") != 0 && strcmp(dot, ".jsonl") != 0) ||
	    !ls_path_find_above(run, sizeof(run), source, "run.json"))
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%s holds no weights: give the directory of the run, %s, or a .safetensors file",
		       source, run);
}

ls_status ls_weights_find(ls_weights *out, const char *source)
{
	ls_weights w = { .run = "" };

	if (strlen(source) >= sizeof(w.run))
		return ls_fail(LS_EINVALID, "the path %.100s... is too long", source);
	if (!ls_path_is_directory(source)) {
		LS_TRY(check_file(source));
		snprintf(w.file, sizeof(w.file), "%s", source);
	} else {
		snprintf(w.run, sizeof(w.run), "%s", source);
		LS_TRY(ls_path_join(w.file, sizeof(w.file), source, "model.safetensors"));
		if (ls_path_exists(w.file)) {
			snprintf(w.checkpoint, sizeof(w.checkpoint), "%s", source);
			LS_TRY(find_run(&w));
		} else {
			LS_TRY(find_in_run(&w));
		}
	}
	*out = w;
	return LS_OK;
}

/* Which samples there are to test on. */
static int is_of_data(const ls_setting *row)
{
	static const char *const names[] = { "data", "data-dir", "test-samples", "image-size", "seed" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(row->name, names[i]) == 0)
			return 1;
	return 0;
}

static int is_noted(const ls_setting *row)
{
	return is_of_data(row) || strcmp(row->name, "label-smoothing") == 0 ||
	       (strcmp(row->group, LS_SETTINGS_TEXT) == 0 && (row->marks & LS_SETTING_BINDS) != 0);
}

static const char *string_of(const ls_setting *row, const ls_train_options *options)
{
	return row->kind == LS_SETTING_STRING ? *(const char *const *)((const char *)options + row->offset) : NULL;
}

static void add(ls_weights_notes *notes, const char *key, const char *value)
{
	if (notes->count < LS_CKPT_METADATA_MAX)
		notes->pair[notes->count++] = (ls_st_pair){ key, value };
}

static void add_copy(ls_weights_notes *notes, const char *key, const char *value)
{
	char *copy = notes->text[notes->count % LS_CKPT_METADATA_MAX];
	snprintf(copy, sizeof(notes->text[0]), "%s", value);
	add(notes, key, copy);
}

static void note(ls_weights_notes *notes, const ls_setting *row, const ls_train_options *options)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	char value[32], usual[32];

	if (row->kind == LS_SETTING_STRING) { /* also the default, which is no more than that */
		if (string_of(row, options))
			add(notes, row->name, string_of(row, options));
		return;
	}
	ls_setting_format(row, options, value, sizeof(value));
	ls_setting_format(row, &defaults, usual, sizeof(usual));
	if (strcmp(value, usual) != 0)
		add_copy(notes, row->name, value);
}

static ls_status note_normalisation(ls_weights_notes *notes, const ls_normalisation *n)
{
	notes->mean = ls_normalisation_to_text(n->mean, n->channels);
	notes->deviation = ls_normalisation_to_text(n->deviation, n->channels);
	if (!notes->mean || !notes->deviation) {
		ls_weights_notes_release(notes);
		return ls_fail(LS_EMEMORY, "no memory for the means of %d channels", n->channels);
	}
	add(notes, LS_WEIGHTS_MEAN, notes->mean);
	add(notes, LS_WEIGHTS_DEVIATION, notes->deviation);
	return LS_OK;
}

void ls_weights_notes_release(ls_weights_notes *notes)
{
	free(notes->mean);
	free(notes->deviation);
	notes->mean = notes->deviation = NULL;
}

ls_status ls_weights_note(ls_weights_notes *out, const ls_train_options *options, ls_settings_context trained_on)
{
	const ls_setting *row;
	char hash[32];

	out->count = 0;
	out->mean = out->deviation = NULL;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (is_noted(row) && !(is_of_data(row) && options->train_set)) /* the caller's has no name */
			note(out, row, options);
	snprintf(hash, sizeof(hash), "%016" PRIx64, trained_on.vocabulary);
	if (trained_on.vocabulary != 0)
		add_copy(out, LS_CKPT_VOCABULARY, hash);
	return trained_on.normalisation ? note_normalisation(out, trained_on.normalisation) : LS_OK;
}

#define INPUT "input"
#define TOKENS "tokens"
#define KNOWN "tokens-known"
#define MASKED "tokens-masked"

static void note_number(ls_weights_notes *notes, const char *key, int value)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", value);
	add_copy(notes, key, text);
}

void ls_weights_note_input(ls_weights_notes *notes, const ls_graph *graph)
{
	const ls_tensor *in = &graph->values[graph->input];
	char shape[32];

	if (graph->tokens_max == 0) {
		snprintf(shape, sizeof(shape), "%dx%dx%d", in->channels, in->height, in->width);
		add_copy(notes, INPUT, shape);
		return;
	}
	note_number(notes, TOKENS, graph->tokens_max);
	note_number(notes, KNOWN, ls_graph_vocabulary(graph));
	note_number(notes, MASKED, graph->masked_max);
}

int ls_weights_parse_input(const char *text, ls_dataset_info *out)
{
	int end = 0;
	return sscanf(text, "%dx%dx%d%n", &out->channels, &out->height, &out->width, &end) == 3 && text[end] == '\0' &&
	       out->channels > 0 && out->height > 0 && out->width > 0;
}

/* One of the file's numbers; it may be anybody's file. */
static int read_number(const ls_st_reader *reader, const char *key, int least, int *out)
{
	const char *text = ls_st_metadata(reader, key);
	char *end = NULL;
	long value = text ? strtol(text, &end, 10) : -1;

	if (!text || *end != '\0' || end == text || value < least || value > INT_MAX)
		return 0;
	*out = (int)value;
	return 1;
}

ls_status ls_weights_read_input(const char *file, ls_dataset_info *out, int *found)
{
	ls_st_reader *reader = NULL;

	LS_TRY(ls_st_open(&reader, file));
	const char *shape = ls_st_metadata(reader, INPUT), *hash = ls_st_metadata(reader, LS_CKPT_VOCABULARY);
	*found = (shape && ls_weights_parse_input(shape, out)) ||
		 (read_number(reader, TOKENS, 1, &out->tokens_max) && read_number(reader, KNOWN, 1, &out->vocabulary) &&
		  read_number(reader, MASKED, 0, &out->masked_max));
	if (*found && hash)
		out->vocabulary_hash = strtoull(hash, NULL, 16);
	ls_st_close(reader);
	return LS_OK;
}

static ls_status read_notes(const ls_st_reader *reader, const char *file, ls_train_options *options)
{
	const ls_setting *row;

	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		const char *value = is_noted(row) ? ls_st_metadata(reader, row->name) : NULL;
		if (!value || row->kind == LS_SETTING_STRING ||
		    (row->kind == LS_SETTING_FLAG && strcmp(value, "on") != 0))
			continue;
		ls_status status = ls_setting_set(row, options, row->kind == LS_SETTING_FLAG ? NULL : value);
		if (status != LS_OK)
			return ls_fail_context(LS_EFORMAT, "the metadata of %s", file);
	}
	return LS_OK;
}

/* NULL when the file does not say, and when it says more than there is room for. */
static const char *copy_note(const ls_st_reader *reader, const char *key, char *out, size_t size)
{
	const char *value = ls_st_metadata(reader, key);
	out[0] = '\0';
	if (value && strlen(value) < size)
		memcpy(out, value, strlen(value) + 1);
	return out[0] != '\0' ? out : NULL;
}

ls_status ls_weights_read_notes(const char *file, ls_train_options *options, ls_weights_said *said)
{
	ls_st_reader *reader = NULL;
	LS_TRY(ls_st_open(&reader, file));
	options->model = copy_note(reader, "model", said->model, sizeof(said->model));
	options->data = copy_note(reader, "data", said->data, sizeof(said->data));
	options->data_dir = copy_note(reader, "data-dir", said->data_dir, sizeof(said->data_dir));
	said->has_vocabulary = ls_st_metadata(reader, LS_CKPT_VOCABULARY) != NULL;
	ls_status status = read_notes(reader, file, options);
	ls_st_close(reader);
	return status;
}
