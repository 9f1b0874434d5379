/*
 * info.c - ls_data_info(): what a dataset holds, for people.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/info_table.h"
#include "data/info_text.h"
#include "data/normalise.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/readers/sst.h"
#include "data/readers/table_files.h"

#define SAMPLES_MAX 100000 /* samples examined: a generated dataset may have millions */
#define CLASSES_SHOWN 256  /* one by one */
#define NAMES_PER_LINE 5

typedef struct summary {
	uint64_t looked;
	uint64_t *labels;                /* (classes) */
	uint64_t sum, squares;           /* of bytes: exact for 2^48 of them */
	double float_sum, float_squares; /* of floats */
	uint64_t image_hash, label_hash;
} summary;

/* A sample's bytes, or floats as they are in the file, added up; *size: how many bytes of `image` there are. */
static ls_status add_sample(const ls_dataset *set, uint64_t index, void *image, int32_t *label, summary *s,
			    size_t *size)
{
	size_t values = ls_dataset_values(&set->info);

	*size = set->read_floats ? values * sizeof(float) : values;
	if (set->read_floats) {
		LS_TRY(set->read_floats(set->self, index, image, label));
		for (size_t k = 0; k < values; k++) {
			double value = (double)((const float *)image)[k];
			s->float_sum += value;
			s->float_squares += value * value;
		}
		return LS_OK;
	}
	LS_TRY(ls_dataset_read_bytes(set, index, image, label));
	for (size_t k = 0; k < values; k++) {
		uint64_t value = ((const uint8_t *)image)[k];
		s->sum += value;
		s->squares += value * value;
	}
	return LS_OK;
}

static ls_status summarise(const ls_dataset *set, void *image, XXH64_state_t *images, XXH64_state_t *labels, summary *s)
{
	size_t size;
	s->looked = set->info.samples < SAMPLES_MAX ? set->info.samples : SAMPLES_MAX;
	for (uint64_t i = 0; i < s->looked; i++) {
		int32_t label;
		LS_TRY(add_sample(set, i, image, &label, s, &size));
		const uint8_t bytes[4] = { (uint8_t)label, (uint8_t)(label >> 8), (uint8_t)(label >> 16),
					   (uint8_t)(label >> 24) };
		if (label < 0 || label >= set->info.classes) /* the file changed after it was opened */
			return ls_fail(LS_EFORMAT, "dataset '%s': sample %" PRIu64 " has label %d, expected 0..%d",
				       set->info.name, i, (int)label, set->info.classes - 1);
		s->labels[label]++;
		XXH64_update(images, image, size);
		XXH64_update(labels, bytes, set->info.classes <= 256 ? 1 : 4);
	}
	s->image_hash = XXH64_digest(images);
	s->label_hash = XXH64_digest(labels);
	return LS_OK;
}

static ls_status look_at(const ls_dataset *set, summary *s)
{
	void *image = malloc(ls_dataset_values(&set->info) * sizeof(float));
	XXH64_state_t *images = XXH64_createState(), *labels = XXH64_createState();
	ls_status status = LS_OK;
	*s = (summary){ .labels = calloc((size_t)set->info.classes, sizeof(*s->labels)) };
	if (!image || !images || !labels || !s->labels) {
		status = ls_fail(LS_EMEMORY, "no memory to look at dataset '%s'", set->info.name);
	} else {
		XXH64_reset(images, 0);
		XXH64_reset(labels, 0);
		status = summarise(set, image, images, labels, s);
	}
	XXH64_freeState(labels);
	XXH64_freeState(images);
	free(image);
	return status;
}

/* What the classes are called: by the files, or by the table; NULL: nothing is known. */
static const char *const *names_of(const ls_dataset *set, const char *name)
{
	const ls_dataset_row *row = name ? ls_dataset_row_of(name) : NULL;
	return set->class_names ? set->class_names : row ? row->class_names : NULL;
}

static void print_labels(const ls_dataset_info *info, const char *const *names, const uint64_t *labels, FILE *to)
{
	uint64_t fewest = UINT64_MAX, most = 0, none = 0;
	int per_line = names ? NAMES_PER_LINE : 10;
	char shown[64];
	fprintf(to, "  labels");
	for (int i = 0; i < info->classes; i++) {
		if (info->classes <= CLASSES_SHOWN)
			fprintf(to, "%s %d%s%s%s: %" PRIu64, i % per_line || !i ? "" : "\n        ", i,
				names ? " (" : "", names ? ls_text_printable(shown, sizeof(shown), names[i]) : "",
				names ? ")" : "", labels[i]);
		fewest = labels[i] < fewest ? labels[i] : fewest;
		most = labels[i] > most ? labels[i] : most;
		none += labels[i] == 0;
	}
	if (info->classes > CLASSES_SHOWN)
		fprintf(to, " 0 to %d: %" PRIu64 " to %" PRIu64 " samples per class, %" PRIu64 " class%s without any",
			info->classes - 1, fewest, most, none, ls_plural(none, "es"));
}

static void print_split(const ls_dataset *set, const char *name, const char *title, const summary *s, FILE *to)
{
	const ls_dataset_info *info = &set->info;
	double count = (double)s->looked * (double)ls_dataset_values(info);
	double mean = set->read_floats ? s->float_sum / count : (double)s->sum / count / 255;
	double square = set->read_floats ? s->float_squares / count : (double)s->squares / count / (255.0 * 255.0);
	char constants[320];
	fprintf(to, "%s: %" PRIu64 " sample%s of %d x %d x %d, %d class%s\n", title, info->samples,
		ls_plural(info->samples, "s"), info->channels, info->height, info->width, info->classes,
		ls_plural((uint64_t)info->classes, "es"));
	fprintf(to, "  normalised with %s%s\n",
		ls_normalisation_show(&set->normalisation, constants, sizeof(constants)),
		ls_normalisation_equal(&set->normalisation, &ls_mnist_normalisation) ? " (MNIST's constants)" : "");
	if (s->looked < info->samples)
		fprintf(to, "  of the first %" PRIu64 " sample%s:\n", s->looked, ls_plural(s->looked, "s"));
	fprintf(to, "  mean %.4f, deviation %.4f (of %s)\n", mean, sqrt(fmax(square - mean * mean, 0)),
		set->read_floats ? "floats as they are" : "pixels, 0 to 1");
	print_labels(info, names_of(set, name), s->labels, to);
	fprintf(to, "\n  xxh64 images %016" PRIx64 ", labels %016" PRIx64 "\n", s->image_hash, s->label_hash);
}

static ls_status image_info(const ls_dataset *set, const char *name, const char *title, FILE *to)
{
	summary s;
	ls_status status = look_at(set, &s);
	if (!status)
		print_split(set, name, title, &s, to);
	free(s.labels);
	return status;
}

/* Warn of options for reading text when the data is not text. */
static void warn_of_idle_options(const ls_dataset_options *options, const ls_dataset_info *info)
{
	int is_read = info->vocabulary_hash != 0;
	const struct {
		const char *name;
		int given, counts;
	} of_text[] = { { "vocab", options->vocab != NULL, is_read },
			{ "cased", options->cased, is_read },
			{ "seq-len", options->tokens > 0, info->tokens_max > 0 },
			{ "replace-invalid", options->replace_invalid, is_read } };

	for (size_t i = 0; i < LS_COUNT(of_text); i++)
		if (of_text[i].given && !of_text[i].counts)
			ls_log_warning("--%s has no effect: %s is not text%s", of_text[i].name, options->name,
				       info->tokens_max ? " that is read from files" : "");
	ls_data_warn_of_dir(options->name, options->dir);
}

/* Columns of a table are looked at once: *columns, malloc'd, is that of the training part. */
static ls_status split_info(const ls_dataset_options *options, ls_split split, char **columns, FILE *to)
{
	ls_dataset_options wanted = *options;
	ls_dataset *set;
	wanted.split = split;
	wanted.columns = *columns;
	LS_TRY(ls_dataset_open(&set, &wanted));
	if (set->columns && !*columns)
		*columns = strdup(set->columns);
	if (split == LS_SPLIT_TRAIN)
		warn_of_idle_options(options, &set->info);
	const char *title = split == LS_SPLIT_TRAIN ? "train" : "test";
	ls_status status = set->columns           ? ls_info_table(set, title, to)
			   : set->info.tokens_max ? ls_info_text(set, title, to)
						  : image_info(set, options->name, title, to);
	ls_dataset_free(set);
	return status;
}

/* A directory may hold only one of the two splits; a name has both. */
/* Text that has GPT's vocabulary, and no other: it is shown as such a model reads it. */
static int is_text_for_gpt(const ls_dataset_options *o)
{
	char home[4096], words[4096], pairs[4096];

	if (o->vocab)
		return ls_bpe_is(o->vocab);
	if (ls_dataset_row_of(o->name) || !ls_path_exists(o->name) || ls_directory_is(o->name) ||
	    ls_table_is(o->name) || ls_image_folder_is(o->name) || !ls_corpus_is_text(o->name) || ls_sst_is(o->name))
		return 0;
	return ls_corpus_home(home, sizeof(home), o->name) == LS_OK &&
	       ls_path_join(words, sizeof(words), home, "vocab.txt") == LS_OK && !ls_path_exists(words) &&
	       ls_path_join(pairs, sizeof(pairs), home, LS_BPE_VOCAB) == LS_OK && ls_path_exists(pairs);
}

static ls_status both_info(const ls_dataset_options *o, char **columns, FILE *to)
{
	int named = ls_dataset_row_of(o->name) != NULL;
	ls_status train = split_info(o, LS_SPLIT_TRAIN, columns, to);

	if (train && (named || train != LS_ENOTFOUND || !o->name || !ls_path_is_directory(o->name)))
		return train;
	if (train)
		return split_info(o, LS_SPLIT_TEST, columns, to);
	ls_status test = split_info(o, LS_SPLIT_TEST, columns, to);
	if (test == LS_ENOTFOUND && !named) {
		fprintf(to, "test: none\n");
		test = LS_OK;
	}
	if (!test && (fflush(to) != 0 || ferror(to)))
		return ls_fail_errno(LS_EIO, "cannot print the summary of '%s'", o->name);
	return test;
}

ls_status ls_data_info_with(const ls_dataset_options *options, FILE *to)
{
	ls_dataset_options own = LS_DATASET_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, cache, "LS_DATASET_OPTIONS_INIT"));
	char *columns = own.columns ? strdup(own.columns) : NULL;
	own.next_token = own.next_token || (own.name && is_text_for_gpt(&own));
	ls_status status = both_info(&own, &columns, to);
	free(columns);
	return status;
}

ls_status ls_data_info(const char *name_or_dir, const char *dir, FILE *to)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = name_or_dir;
	options.dir = dir;
	return ls_data_info_with(&options, to);
}
