/*
 * dataset.c - opening a dataset by name (table.c) or path, reading a sample of it, and where downloads live.
 */
#include "data/dataset.h"
#include "data/task.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "data/normalise.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/readers/sst.h"
#include "data/readers/table_files.h"
#include "data/unsupported.h"

size_t ls_dataset_values(const ls_dataset_info *info)
{
	return (size_t)info->channels * (size_t)info->height * (size_t)info->width;
}

/* A larger sample is a mistake; the limit also keeps every size within an int64. */
#define VALUES_MAX ((size_t)1 << 28)

#define SIDE_MAX (1 << 20)

static ls_status image_check(const ls_dataset_info *info)
{
	if (info->vocabulary || info->masked_max)
		return ls_fail(
			LS_EINVALID,
			"dataset '%s' has a vocabulary or masked positions, but tokens_max 0: an image has neither",
			info->name);
	if (info->channels < 1 || info->height < 1 || info->width < 1)
		return ls_fail(LS_EINVALID, "dataset '%s' has samples of %d x %d x %d values; each must be positive",
			       info->name, info->channels, info->height, info->width);
	if (info->channels > SIDE_MAX || info->height > SIDE_MAX || info->width > SIDE_MAX ||
	    ls_dataset_values(info) > VALUES_MAX)
		return ls_fail(
			LS_EINVALID,
			"dataset '%s' has samples of %d x %d x %d values; at most %d per dimension and %zu in all",
			info->name, info->channels, info->height, info->width, SIDE_MAX, VALUES_MAX);
	return LS_OK;
}

static ls_status text_check(const ls_dataset_info *info)
{
	if (info->channels || info->height || info->width)
		return ls_fail(LS_EINVALID,
			       "dataset '%s' has samples of text and of %d x %d x %d values; text has none", info->name,
			       info->channels, info->height, info->width);
	if (info->tokens_max < 1 || info->tokens_max > SIDE_MAX)
		return ls_fail(LS_EINVALID, "dataset '%s' has samples of up to %d tokens; they can have 1 to %d",
			       info->name, info->tokens_max, SIDE_MAX);
	if (info->vocabulary < 1)
		return ls_fail(LS_EINVALID, "dataset '%s' has a vocabulary of %d tokens; it needs at least one",
			       info->name, info->vocabulary);
	if (info->masked_max < 0 || info->masked_max > info->tokens_max)
		return ls_fail(LS_EINVALID,
			       "dataset '%s' has up to %d masked positions per sample, but at most %d tokens",
			       info->name, info->masked_max, info->tokens_max);
	return LS_OK;
}

static ls_status targets_check(const ls_dataset_info *info)
{
	if ((unsigned)info->task > LS_TASK_REGRESSION)
		return ls_fail(LS_EINVALID, "dataset '%s' has task %d, which is not one of ls_task", info->name,
			       (int)info->task);
	if (info->targets != 0 && info->targets != info->classes)
		return ls_fail(LS_EINVALID,
			       "dataset '%s' has %d float targets per sample and %d classes; they must be as many",
			       info->name, info->targets, info->classes);
	if (info->task != LS_TASK_CLASSIFICATION && info->targets == 0)
		return ls_fail(LS_EINVALID, "dataset '%s' is for %s and needs float targets", info->name,
			       ls_task_title(info->task));
	return LS_OK;
}

static ls_status info_check(const ls_dataset_info *info)
{
	if (!memchr(info->name, 0, sizeof(info->name)))
		return ls_fail(LS_EINVALID, "dataset name is longer than %zu characters", sizeof(info->name) - 1);
	if (info->samples == 0)
		return ls_fail(LS_EINVALID, "dataset '%s' has no samples; it needs at least one", info->name);
	if (info->samples > INT64_MAX)
		return ls_fail(LS_EINVALID, "dataset '%s' has %llu samples; at most %lld can be counted", info->name,
			       (unsigned long long)info->samples, (long long)INT64_MAX);
	if (info->classes < 1)
		return ls_fail(LS_EINVALID, "dataset '%s' has %d classes; it needs at least one", info->name,
			       info->classes);
	LS_TRY(targets_check(info));
	return info->tokens_max ? text_check(info) : image_check(info);
}

static ls_status dataset_make(ls_dataset **out, const ls_dataset_info *info, ls_dataset_ops ops, ls_bytes_read bytes,
			      void *self)
{
	LS_TRY(info_check(info));
	ls_dataset *dataset = calloc(1, sizeof(*dataset));
	if (!dataset)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", info->name);
	dataset->info = *info;
	dataset->ops = ops;
	dataset->self = self;
	dataset->read_bytes = bytes;
	ls_status status = ls_handle_add(dataset, LS_DATASET_KIND);
	if (status == LS_OK)
		*out = dataset;
	else
		free(dataset);
	return status;
}

ls_status ls_dataset_new(ls_dataset **out, const ls_dataset_info *info, const ls_dataset_ops *ops, void *self)
{
	if (!out || !info || !ops)
		return ls_fail(LS_EINVALID, "ls_dataset_new needs an info and the functions that read it");
	if (info->tokens_max ? !ops->read_text || !ops->measure_text : !ops->read)
		return ls_fail(LS_EINVALID, "ls_dataset_new: '%.63s' needs %s", info->name,
			       info->tokens_max ? "read_text and measure_text" : "a read function");
	if (info->targets && !ops->read_targets)
		return ls_fail(LS_EINVALID, "ls_dataset_new: '%.63s' has float targets and needs read_targets",
			       info->name);
	if (!ls_options_are_zero(info->reserved, sizeof(info->reserved)) ||
	    !ls_options_are_zero(ops->reserved, sizeof(ops->reserved)))
		return ls_fail(LS_EINVALID, "ls_dataset_new: '%.63s': what is reserved must be 0; start from { 0 }",
			       info->name);
	return dataset_make(out, info, *ops, NULL, self);
}

/* Bytes or floats that are to be normalised; one of the two reads them. */
static ls_status normalised_make(ls_dataset **out, const ls_dataset_info *info, const ls_normalisation *normalisation,
				 ls_bytes_read bytes, ls_floats_read floats, void (*release)(void *self), void *self)
{
	ls_dataset *dataset = NULL;
	LS_TRY(dataset_make(&dataset, info, (ls_dataset_ops){ .free = NULL }, bytes, self));
	dataset->read_floats = floats;
	ls_status status = ls_dataset_normalise(dataset, normalisation);
	if (status) {
		ls_dataset_free(dataset);
		return status;
	}
	dataset->ops.free = release;
	*out = dataset;
	return LS_OK;
}

ls_status ls_dataset_new_bytes(ls_dataset **out, const ls_dataset_info *info, const ls_normalisation *normalisation,
			       ls_bytes_read read, void (*release)(void *self), void *self)
{
	return normalised_make(out, info, normalisation, read, NULL, release, self);
}

ls_status ls_dataset_new_floats(ls_dataset **out, const ls_dataset_info *info, const ls_normalisation *normalisation,
				ls_floats_read read, void (*release)(void *self), void *self)
{
	return normalised_make(out, info, normalisation, NULL, read, release, self);
}

static ls_status fill_levels(ls_dataset *dataset, const ls_normalisation *n)
{
	size_t channels = (size_t)n->channels;
	float *level = malloc(channels * 256 * sizeof(*level));
	if (!level)
		return ls_fail(LS_EMEMORY, "no memory to normalise the %zu channels of dataset '%s'", channels,
			       dataset->info.name);
	for (size_t c = 0; c < channels; c++)
		for (int i = 0; i < 256; i++)
			level[c * 256 + (size_t)i] = ((float)i / 255.0f - (float)n->mean[c]) / (float)n->deviation[c];
	free(dataset->level);
	dataset->level = level;
	return LS_OK;
}

ls_status ls_dataset_normalise(ls_dataset *dataset, const ls_normalisation *normalisation)
{
	int channels = dataset->info.channels;
	ls_normalisation all = { 0 };
	if (!dataset->read_bytes && !dataset->read_floats)
		return LS_OK; /* text, or a program's floats */
	if (normalisation->channels != 1 && normalisation->channels != channels)
		return ls_fail(LS_EMISMATCH,
			       "dataset '%s' has images of %d channels, and they are to be normalised with means and "
			       "deviations of %d",
			       dataset->info.name, channels, normalisation->channels);
	LS_TRY(ls_normalisation_check(normalisation, dataset->info.name));
	LS_TRY(ls_normalisation_new(&all, channels));
	for (int c = 0; c < channels; c++) {
		int from = normalisation->channels == 1 ? 0 : c;
		all.mean[c] = normalisation->mean[from];
		all.deviation[c] = normalisation->deviation[from];
	}
	ls_status status = fill_levels(dataset, &all);
	if (status) {
		ls_normalisation_release(&all);
		return status;
	}
	ls_normalisation_release(&dataset->normalisation);
	dataset->normalisation = all;
	return LS_OK;
}

const char *ls_dataset_columns(const ls_dataset *dataset)
{
	return dataset->columns;
}

const ls_normalisation *ls_dataset_normalisation(const ls_dataset *dataset)
{
	return dataset->read_bytes || dataset->read_floats ? &dataset->normalisation : NULL;
}

void ls_dataset_free(ls_dataset *dataset)
{
	if (!dataset || !ls_handle_remove(dataset, LS_DATASET_KIND))
		return;
	if (dataset->ops.free)
		dataset->ops.free(dataset->self);
	ls_normalisation_release(&dataset->normalisation);
	free(dataset->level);
	free(dataset);
}

const ls_dataset_info *ls_dataset_describe(const ls_dataset *dataset)
{
	return &dataset->info;
}

static ls_status index_check(const ls_dataset *dataset, uint64_t index)
{
	if (index >= dataset->info.samples)
		return ls_fail(LS_EINVALID, "dataset '%s' has %llu samples; sample %llu does not exist",
			       dataset->info.name, (unsigned long long)dataset->info.samples,
			       (unsigned long long)index);
	return LS_OK;
}

ls_status ls_dataset_read_bytes(const ls_dataset *dataset, uint64_t index, uint8_t *image, int32_t *label)
{
	LS_TRY(index_check(dataset, index));
	if (!dataset->read_bytes)
		return ls_fail(LS_EUNSUPPORTED, "dataset '%s' is not made of bytes", dataset->info.name);
	return dataset->read_bytes(dataset->self, index, image, label);
}

/*
 * The bytes are read into the last quarter of the float buffer and widened front to back, in place: float i covers
 * bytes 4i..4i+3, and byte i lies at 3n+i >= 4i, so no byte is overwritten before it is read.
 */
static ls_status read_normalised(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label)
{
	size_t values = ls_dataset_values(&dataset->info);
	uint8_t *bytes = (uint8_t *)image + 3 * values;
	LS_TRY(dataset->read_bytes(dataset->self, index, bytes, label));
	size_t channels = (size_t)dataset->info.channels, positions = values / channels;
	for (size_t c = 0; c < channels; c++) {
		const float *level = dataset->level + c * 256;
		for (size_t i = c * positions; i < (c + 1) * positions; i++)
			image[i] = level[bytes[i]];
	}
	return LS_OK;
}

static ls_status read_floats(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label)
{
	size_t positions = (size_t)dataset->info.height * (size_t)dataset->info.width;
	const ls_normalisation *n = &dataset->normalisation;
	LS_TRY(dataset->read_floats(dataset->self, index, image, label));
	for (int c = 0; c < n->channels; c++) {
		float mean = (float)n->mean[c], deviation = (float)n->deviation[c];
		float *channel = image + (size_t)c * positions;
		for (size_t i = 0; i < positions; i++)
			channel[i] = (channel[i] - mean) / deviation;
	}
	return LS_OK;
}

static ls_status label_check(const ls_dataset *dataset, uint64_t index, int32_t label)
{
	if (label < 0 || label >= dataset->info.classes)
		return ls_fail(LS_EFORMAT, "dataset '%s': sample %llu has label %d, expected 0..%d", dataset->info.name,
			       (unsigned long long)index, (int)label, dataset->info.classes - 1);
	return LS_OK;
}

ls_status ls_dataset_sample(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label)
{
	LS_TRY(index_check(dataset, index));
	if (dataset->info.tokens_max)
		return ls_fail(LS_EUNSUPPORTED, "dataset '%s' is text, not images", dataset->info.name);
	int32_t found = 0;
	LS_TRY(dataset->read_bytes    ? read_normalised(dataset, index, image, &found)
	       : dataset->read_floats ? read_floats(dataset, index, image, &found)
				      : dataset->ops.read(dataset->self, index, image, &found));
	LS_TRY(label_check(dataset, index, found));
	*label = found;
	return LS_OK;
}

static ls_status read_text_label(const ls_dataset *dataset, uint64_t index, int32_t *label)
{
	size_t tokens = (size_t)dataset->info.tokens_max, masked = (size_t)dataset->info.masked_max;
	int32_t *room = calloc(2 * (tokens + masked) + 1, sizeof(*room));
	ls_text_sample sample = { .tokens = room,
				  .segments = room + tokens,
				  .places = room + 2 * tokens,
				  .targets = room + 2 * tokens + masked };
	ls_status status = room ? ls_dataset_sample_text(dataset, index, 0, &sample)
				: ls_fail(LS_EMEMORY, "no memory for a sample of %zu tokens", tokens);

	if (status == LS_OK)
		*label = sample.label;
	free(room);
	return status;
}

ls_status ls_dataset_read_label(const ls_dataset *dataset, uint64_t index, float *room, int32_t *label)
{
	int32_t found = 0;

	if (!dataset->read_label)
		return dataset->info.tokens_max ? read_text_label(dataset, index, label)
						: ls_dataset_sample(dataset, index, room, label);
	LS_TRY(index_check(dataset, index));
	LS_TRY(dataset->read_label(dataset->self, index, &found));
	LS_TRY(label_check(dataset, index, found));
	*label = found;
	return LS_OK;
}

ls_status ls_dataset_check_target(const ls_dataset *dataset, uint64_t index, int i, float value)
{
	const ls_dataset_info *info = &dataset->info;

	if (isfinite(value) && (info->task == LS_TASK_REGRESSION || (value >= 0 && value <= 1)))
		return LS_OK;
	return ls_fail(LS_EFORMAT, "dataset '%s': target %d of sample %llu is %g, expected %s", info->name, i,
		       (unsigned long long)index, (double)value,
		       info->task == LS_TASK_REGRESSION ? "a finite number" : "a number from 0 to 1");
}

ls_status ls_dataset_sample_targets(const ls_dataset *dataset, uint64_t index, float *targets)
{
	LS_TRY(index_check(dataset, index));
	if (!dataset->info.targets)
		return ls_fail(LS_EUNSUPPORTED, "dataset '%s' has labels and no float targets", dataset->info.name);
	LS_TRY(dataset->ops.read_targets(dataset->self, index, targets));
	for (int i = 0; i < dataset->info.targets; i++)
		LS_TRY(ls_dataset_check_target(dataset, index, i, targets[i]));
	return LS_OK;
}

ls_status ls_dataset_check(const ls_dataset *dataset)
{
	return dataset->check ? dataset->check(dataset->self) : LS_OK;
}

static ls_status lie(const ls_dataset *dataset, uint64_t index, const char *field, long long value, long long low,
		     long long high)
{
	return ls_fail(LS_EFORMAT, "dataset '%s': sample %llu has %s %lld, expected %lld..%lld", dataset->info.name,
		       (unsigned long long)index, field, value, low, high);
}

ls_status ls_dataset_sample_measures(const ls_dataset *dataset, uint64_t index, uint64_t epoch, int *length,
				     int *masked)
{
	const ls_dataset_info *info = &dataset->info;
	int tokens = 0, asked = 0;
	LS_TRY(index_check(dataset, index));
	if (!info->tokens_max)
		return ls_fail(LS_EUNSUPPORTED, "dataset '%s' is images, not text", info->name);
	LS_TRY(dataset->ops.measure_text(dataset->self, index, epoch, &tokens, &asked));
	if (tokens < 1 || tokens > info->tokens_max)
		return lie(dataset, index, "length", tokens, 1, info->tokens_max);
	if (asked < 0 || asked > info->masked_max)
		return lie(dataset, index, "masked", asked, 0, info->masked_max);
	*length = tokens;
	*masked = asked;
	return LS_OK;
}

static ls_status tokens_check(const ls_dataset *dataset, uint64_t index, const ls_text_sample *s)
{
	for (int i = 0; i < s->length; i++) {
		if (s->tokens[i] < 0 || s->tokens[i] >= dataset->info.vocabulary)
			return lie(dataset, index, "token", s->tokens[i], 0, dataset->info.vocabulary - 1);
		if (s->segments[i] != 0 && s->segments[i] != 1)
			return lie(dataset, index, "segment", s->segments[i], 0, 1);
	}
	return LS_OK;
}

static ls_status masked_check(const ls_dataset *dataset, uint64_t index, const ls_text_sample *s)
{
	for (int i = 0; i < s->masked; i++) {
		int lowest = i ? s->places[i - 1] + 1 : 0;
		if (s->places[i] < lowest || s->places[i] >= s->length)
			return lie(dataset, index, "place", s->places[i], lowest, s->length - 1);
		if (s->targets[i] < 0 || s->targets[i] >= dataset->info.vocabulary)
			return lie(dataset, index, "target", s->targets[i], 0, dataset->info.vocabulary - 1);
	}
	return LS_OK;
}

ls_status ls_dataset_sample_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	int length = 0, masked = 0;
	LS_TRY(ls_dataset_sample_measures(dataset, index, epoch, &length, &masked));
	out->length = out->masked = 0;
	out->label = 0;
	LS_TRY(dataset->ops.read_text(dataset->self, index, epoch, out));
	if (out->length != length) /* the step's total was computed from measured lengths */
		return lie(dataset, index, "length", out->length, length, length);
	if (out->masked != masked)
		return lie(dataset, index, "masked", out->masked, masked, masked);
	LS_TRY(tokens_check(dataset, index, out));
	LS_TRY(masked_check(dataset, index, out));
	return label_check(dataset, index, out->label);
}

/* Only treebanks have phrases: elsewhere the option would silently change nothing. */
static ls_status check_phrases(const ls_dataset_options *options, int has_trees)
{
	if (!options->phrases || has_trees)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "options.phrases needs sst5, whose sentences are trees of phrases; dataset '%s' has no trees",
		       options->name);
}

/* A directory of IDX files, of trees or of class folders with images, else of text; a file of text. */
static ls_status open_path(ls_dataset **out, const ls_dataset_options *options)
{
	const char *path = options->name;
	LS_TRY(check_phrases(options, ls_path_is_directory(path) && ls_sst_is(path)));
	if (ls_table_is(path))
		return ls_table_open(out, options);
	if (ls_numpy_is(path))
		return ls_numpy_open(out, options);
	if (!ls_directory_is(path) && !ls_sst_is(path) && (ls_shards_is(path) || ls_image_folder_is(path)))
		return ls_image_folder_open(out, options);
	if (!ls_path_is_directory(path) || (!ls_directory_is(path) && !ls_sst_is(path)))
		LS_TRY(ls_data_check_format(path));
	if (!ls_path_is_directory(path) && !ls_corpus_is_text(path))
		return ls_fail(LS_EINVALID,
			       "dataset '%s' is a file that is not text; give the directory of the IDX files", path);
	if (!ls_path_is_directory(path))
		return ls_corpus_open(out, options);
	if (ls_directory_is(path))
		return ls_directory_open(out, options);
	if (!ls_corpus_is_text(path))
		return ls_fail(LS_ENOTFOUND,
			       "%s contains no dataset: found no class folders with images (%s/cat/1.png), no tar or "
			       ".npy files, no train.csv, no train-images-idx3-ubyte (or .gz) and no .txt files",
			       path, path);
	if (!ls_sst_is(path)) {
		if (options->split == LS_SPLIT_TRAIN)
			ls_image_folder_note(path);
		return ls_corpus_open(out, options);
	}
	ls_dataset_options trees = *options;
	trees.dir = path;
	return ls_sst_open(out, &trees);
}

static ls_status open_named(ls_dataset **out, const ls_dataset_kind *kind, const ls_dataset_options *options)
{
	ls_dataset *set = NULL;
	LS_TRY(check_phrases(options, kind->open == ls_sst_open));
	LS_TRY(kind->open(&set, options));
	ls_status status = options->normalisation ? ls_dataset_normalise(set, options->normalisation) : LS_OK;
	if (status) {
		ls_dataset_free(set);
		return status;
	}
	*out = set;
	return LS_OK;
}

ls_status ls_dataset_open(ls_dataset **out, const ls_dataset_options *options)
{
	ls_dataset_options own = LS_DATASET_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, cache, "LS_DATASET_OPTIONS_INIT"));
	const char *name = own.name;
	if (!name || !*name)
		return ls_fail(LS_EINVALID, "no dataset named; for example options.data glyphs");
	size_t row = ls_name_row(name, ls_dataset_name_at);
	if (row != LS_NO_ROW)
		return open_named(out, ls_dataset_kind_at(row), &own);
	if (ls_path_exists(name))
		return open_path(out, &own);
	if (errno == ELOOP)
		return ls_fail_errno(LS_ENOTFOUND, "cannot open dataset '%s'", name);
	char target[4096];
	ssize_t length = readlink(name, target, sizeof(target) - 1);
	if (length > 0)
		return ls_fail(LS_ENOTFOUND, "dataset '%s' is a symbolic link to %.*s, which does not exist", name,
			       (int)length, target);
	if (strchr(name, '/'))
		return ls_fail(LS_ENOTFOUND, "dataset '%s' does not exist: there is no such file or directory", name);
	if (strchr(name, '.'))
		return ls_fail(LS_ENOTFOUND,
			       "there is no file '%s', and no dataset of that name; `lockstep data list` shows them",
			       name);
	return ls_name_unknown("dataset, file or folder", name, ls_dataset_name_at);
}

static const char *home_directory(void)
{
	const char *home = getenv("HOME");
	if (home && *home)
		return home;
	const struct passwd *entry = getpwuid(getuid());
	return entry && entry->pw_dir ? entry->pw_dir : ".";
}

const char *ls_data_cache(void)
{
	static _Thread_local char path[4096];
	const char *set = getenv("LOCKSTEP_DATA");
	const char *xdg = getenv("XDG_CACHE_HOME");
	if (set && *set)
		snprintf(path, sizeof(path), "%s", set);
	else if (xdg && *xdg == '/')
		snprintf(path, sizeof(path), "%s/lockstep", xdg);
	else
		snprintf(path, sizeof(path), "%s/.cache/lockstep", home_directory());
	return path;
}

void ls_data_warn_of_dir(const char *name, const char *dir)
{
	const ls_dataset_row *row = ls_dataset_row_of(name);
	if (dir && !(row && row->needs_download))
		ls_log_warning("options.dir has no effect: files of %s are not read from there", name);
}

void ls_data_warn_of_samples(const ls_dataset *set, const char *option, uint64_t wanted, ls_split split)
{
	unsigned long long samples = set->info.samples;
	if (wanted > samples)
		ls_log_warning("%s %llu: %s has only %llu %s sample%s, and all of them are used", option,
			       (unsigned long long)wanted, set->info.name, samples,
			       split == LS_SPLIT_TRAIN ? "training" : "test", ls_plural(samples, "s"));
}

ls_status ls_data_directory(char *out, size_t size, const char *dir, const char *name)
{
	if (!dir)
		return ls_path_join(out, size, ls_data_cache(), name);
	if ((size_t)snprintf(out, size, "%s", dir) >= size)
		return ls_fail(LS_EINVALID, "directory name is longer than %zu characters", size - 1);
	return LS_OK;
}
