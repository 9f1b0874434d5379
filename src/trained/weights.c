#include "trained/weights.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "data/normalise.h"
#include "data/task.h"
#include "settings/model.h"
#include "settings/settings.h"
#include "trained/columns.h"

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

/* 1: `source` is RUN/best.safetensors, and `run` is RUN. */
static int is_best_of_run(const char *source, char *run, size_t size)
{
	const char *slash = strrchr(source, '/');
	char path[4096];

	if (strcmp(slash ? slash + 1 : source, LS_WEIGHTS_BEST) != 0)
		return 0;
	snprintf(run, size, "%.*s", slash ? (int)(slash - source) : 1, slash ? source : ".");
	if (ls_path_join(path, sizeof(path), run, "run.json") != LS_OK || !ls_path_exists(path))
		run[0] = '\0';
	return run[0] != '\0';
}

static ls_status find_best(ls_weights *w)
{
	LS_TRY(ls_path_join(w->file, sizeof(w->file), w->run, LS_WEIGHTS_BEST));
	if (!ls_path_exists(w->file))
		return ls_fail(LS_ENOTFOUND,
			       "%s has no " LS_WEIGHTS_BEST
			       ": a run keeps its best weights with options.keep_best METRIC",
			       w->run);
	return ls_ckpt_newest(w->run, w->checkpoint, sizeof(w->checkpoint));
}

/* A checkpoint, a run, or a directory as Hugging Face's save_pretrained() writes it: weights without a state, and not
 * in a run, where a checkpoint without one is not whole. */
static ls_status find_in_directory(ls_weights *w, const char *source)
{
	char state[sizeof(w->file)], run[sizeof(w->run)];

	LS_TRY(ls_path_join(w->file, sizeof(w->file), source, "model.safetensors"));
	LS_TRY(ls_path_join(state, sizeof(state), source, "state.json"));
	if (ls_path_exists(w->file) && !ls_path_exists(state) &&
	    !ls_path_find_above(run, sizeof(run), w->file, "run.json")) {
		snprintf(w->home, sizeof(w->home), "%s", source);
		return LS_OK;
	}
	snprintf(w->run, sizeof(w->run), "%s", source);
	if (!ls_path_exists(w->file))
		return find_in_run(w);
	snprintf(w->checkpoint, sizeof(w->checkpoint), "%s", source);
	return find_run(w);
}

ls_status ls_weights_find(ls_weights *out, const char *source, int best)
{
	ls_weights w = { .run = "" };

	if (strlen(source) >= sizeof(w.run))
		return ls_fail(LS_EINVALID, "the path %.100s... is too long", source);
	if (best && !ls_path_is_directory(source))
		return ls_fail(LS_EINVALID, "options.best is for a run directory, and %s is none", source);
	if (best)
		snprintf(w.run, sizeof(w.run), "%s", source);
	if (best || is_best_of_run(source, w.run, sizeof(w.run))) {
		LS_TRY(find_best(&w));
	} else if (!ls_path_is_directory(source)) {
		LS_TRY(check_file(source));
		snprintf(w.file, sizeof(w.file), "%s", source);
	} else {
		LS_TRY(find_in_directory(&w, source));
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

/* Settings of a family that say how a sample is computed: its names. NULL: it is another setting. */
typedef const char *(*name_table)(size_t i);
static name_table names_of(const ls_setting *row)
{
	if (strcmp(row->name, "loss") == 0)
		return ls_loss_name;
	if (strcmp(row->name, "conv") == 0)
		return ls_conv_algorithm_name_at;
	return strcmp(row->name, "precision") == 0 ? ls_precision_name_at : NULL;
}

/* Of files in bf16: what attention multiplies in. Versions that did not note it multiplied in fp32 there. */
#define ATTENTION "attention"
#define CLASS_WEIGHTS "class-weights" /* "0.5,2,1": a test loss is that of training */

static int is_noted(const ls_setting *row)
{
	return is_of_data(row) || names_of(row) || strcmp(row->name, "label-smoothing") == 0 ||
	       strcmp(row->name, CLASS_WEIGHTS) == 0 ||
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

	if (row->kind == LS_SETTING_STRING) { /* of paths also the default, which is no more than that */
		const char *text = string_of(row, options), *plain = is_of_data(row) ? NULL : string_of(row, &defaults);
		if (text && !(plain && strcmp(text, plain) == 0))
			add(notes, row->name, text);
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
	free(notes->labels);
	notes->mean = notes->deviation = notes->labels = NULL;
}

ls_status ls_weights_note(ls_weights_notes *out, const ls_train_options *options, ls_settings_context trained_on)
{
	const ls_setting *row;
	char hash[32];

	out->count = 0;
	out->mean = out->deviation = out->labels = NULL;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (is_noted(row) && !(is_of_data(row) && options->train_set)) /* the caller's has no name */
			note(out, row, options);
	if (options->precision && strcmp(options->precision, "bf16") == 0)
		add(out, ATTENTION, options->precision);
	snprintf(hash, sizeof(hash), "%016" PRIx64, trained_on.vocabulary);
	if (trained_on.vocabulary != 0)
		add_copy(out, LS_CKPT_VOCABULARY, hash);
	if (trained_on.columns)
		add(out, LS_WEIGHTS_COLUMNS, trained_on.columns);
	if (trained_on.task != LS_TASK_CLASSIFICATION)
		add(out, LS_WEIGHTS_TASK, ls_task_name(trained_on.task));
	return trained_on.normalisation ? note_normalisation(out, trained_on.normalisation) : LS_OK;
}

void ls_weights_note_labels(ls_weights_notes *notes, char *labels)
{
	notes->labels = labels;
	if (labels)
		add(notes, LS_WEIGHTS_LABELS, labels);
}

ls_status ls_weights_read_labels(const char *file, char **labels)
{
	ls_st_reader *reader = NULL;

	LS_TRY(ls_st_open(&reader, file));
	const char *noted = ls_st_metadata(reader, LS_WEIGHTS_LABELS);
	char *copy = noted ? strdup(noted) : NULL;
	ls_st_close(reader);
	if (noted && !copy)
		return ls_fail(LS_EMEMORY, "no memory for the names of classes in %s", file);
	*labels = copy;
	return LS_OK;
}

#define INPUT "input"
#define TOKENS "tokens"
#define KNOWN "tokens-known"
#define MASKED "tokens-masked"
#define BEST_METRIC "best-metric"
#define BEST_VALUE "best-value"
#define BEST_STEP "best-step"

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

void ls_weights_note_best(ls_weights_notes *notes, const char *metric, double value, uint64_t step)
{
	char text[32];

	add(notes, BEST_METRIC, metric);
	snprintf(text, sizeof(text), "%.17g", value); /* a resumed run compares with it */
	add_copy(notes, BEST_VALUE, text);
	snprintf(text, sizeof(text), "%" PRIu64, step);
	add_copy(notes, BEST_STEP, text);
}

ls_status ls_weights_read_best(const char *file, const char *metric, double *value, uint64_t *step, int *found)
{
	ls_st_reader *reader = NULL;

	LS_TRY(ls_st_open(&reader, file));
	const char *name = ls_st_metadata(reader, BEST_METRIC), *number = ls_st_metadata(reader, BEST_VALUE);
	const char *when = ls_st_metadata(reader, BEST_STEP);
	double noted = number ? strtod(number, NULL) : (double)NAN;
	*found = name && strcmp(name, metric) == 0 && isfinite(noted) && when;
	if (*found) {
		*value = noted;
		*step = strtoull(when, NULL, 10);
	}
	ls_st_close(reader);
	return LS_OK;
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

/* A name that we know; other programs note under these keys what they like. */
static void read_name(const ls_setting *row, const char *value, ls_train_options *options)
{
	const char *name;

	for (size_t i = 0; (name = names_of(row)(i)); i++)
		if (strcmp(value, name) == 0)
			*(const char **)((char *)options + row->offset) = name;
}

static ls_status read_notes(const ls_st_reader *reader, const char *file, ls_train_options *options)
{
	const ls_setting *row;

	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		const char *value = is_noted(row) ? ls_st_metadata(reader, row->name) : NULL;
		if (value && names_of(row))
			read_name(row, value, options);
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

/* A list of numbers; what else other programs note under that key says nothing to us. */
static ls_status read_class_weights(const ls_st_reader *reader, ls_train_options *options, ls_weights_said *said)
{
	const char *list = ls_st_metadata(reader, CLASS_WEIGHTS);

	if (!list || !*list || list[strspn(list, "0123456789.,eE+-")] != '\0')
		return LS_OK;
	said->class_weights = strdup(list);
	if (!said->class_weights)
		return ls_fail(LS_EMEMORY, "no memory for the weights of classes");
	options->class_weights = said->class_weights;
	return LS_OK;
}

void ls_weights_said_release(ls_weights_said *said)
{
	free(said->class_weights);
	said->class_weights = NULL;
}

ls_status ls_weights_read_notes(const char *file, ls_train_options *options, ls_weights_said *said)
{
	ls_st_reader *reader = NULL;

	said->class_weights = NULL;
	LS_TRY(ls_st_open(&reader, file));
	options->model = copy_note(reader, "model", said->model, sizeof(said->model));
	options->data = copy_note(reader, "data", said->data, sizeof(said->data));
	options->data_dir = copy_note(reader, "data-dir", said->data_dir, sizeof(said->data_dir));
	said->has_vocabulary = ls_st_metadata(reader, LS_CKPT_VOCABULARY) != NULL;
	ls_status status = read_notes(reader, file, options);
	if (!ls_st_metadata(reader, ATTENTION))
		options->precision = ls_settings_earlier_precision(options->precision, options->model);
	if (status == LS_OK)
		status = read_class_weights(reader, options, said);
	ls_st_close(reader);
	return status;
}
