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
#include "data/info_text.h"
#include "data/normalise.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/readers/sst.h"

#define SAMPLES_MAX 100000 /* samples examined: a generated dataset may have millions */
#define CLASSES_SHOWN 256  /* one by one */

typedef struct summary {
	uint64_t looked;
	uint64_t *labels;      /* (classes) */
	uint64_t sum, squares; /* of bytes: exact for 2^48 of them */
	uint64_t image_hash, label_hash;
} summary;

static ls_status summarise(const ls_dataset *set, uint8_t *image, XXH64_state_t *images, XXH64_state_t *labels,
			   summary *s)
{
	size_t values = ls_dataset_values(&set->info);
	s->looked = set->info.samples < SAMPLES_MAX ? set->info.samples : SAMPLES_MAX;
	for (uint64_t i = 0; i < s->looked; i++) {
		int32_t label;
		LS_TRY(ls_dataset_read_bytes(set, i, image, &label));
		const uint8_t bytes[4] = { (uint8_t)label, (uint8_t)(label >> 8), (uint8_t)(label >> 16),
					   (uint8_t)(label >> 24) };
		if (label < 0 || label >= set->info.classes) /* the file changed after it was opened */
			return ls_fail(LS_EFORMAT, "dataset '%s': sample %" PRIu64 " has label %d, expected 0..%d",
				       set->info.name, i, (int)label, set->info.classes - 1);
		s->labels[label]++;
		for (size_t k = 0; k < values; k++) {
			s->sum += image[k];
			s->squares += (uint64_t)image[k] * image[k];
		}
		XXH64_update(images, image, values);
		XXH64_update(labels, bytes, set->info.classes <= 256 ? 1 : 4);
	}
	s->image_hash = XXH64_digest(images);
	s->label_hash = XXH64_digest(labels);
	return LS_OK;
}

static ls_status look_at(const ls_dataset *set, summary *s)
{
	uint8_t *image = malloc(ls_dataset_values(&set->info));
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

static void print_labels(const ls_dataset_info *info, const uint64_t *labels, FILE *to)
{
	uint64_t fewest = UINT64_MAX, most = 0, none = 0;
	fprintf(to, "  labels");
	for (int i = 0; i < info->classes; i++) {
		if (info->classes <= CLASSES_SHOWN)
			fprintf(to, "%s %d: %" PRIu64, i % 10 || !i ? "" : "\n        ", i, labels[i]);
		fewest = labels[i] < fewest ? labels[i] : fewest;
		most = labels[i] > most ? labels[i] : most;
		none += labels[i] == 0;
	}
	if (info->classes > CLASSES_SHOWN)
		fprintf(to, " 0 to %d: %" PRIu64 " to %" PRIu64 " samples per class, %" PRIu64 " class%s without any",
			info->classes - 1, fewest, most, none, ls_plural(none, "es"));
}

static void print_split(const ls_dataset *set, const char *title, const summary *s, FILE *to)
{
	const ls_dataset_info *info = &set->info;
	double count = (double)s->looked * (double)ls_dataset_values(info);
	double mean = (double)s->sum / count / 255, square = (double)s->squares / count / (255.0 * 255.0);
	char constants[320];
	fprintf(to, "%s: %" PRIu64 " sample%s of %d x %d x %d, %d class%s\n", title, info->samples,
		ls_plural(info->samples, "s"), info->channels, info->height, info->width, info->classes,
		ls_plural((uint64_t)info->classes, "es"));
	fprintf(to, "  normalised with %s%s\n",
		ls_normalisation_show(&set->normalisation, constants, sizeof(constants)),
		ls_normalisation_equal(&set->normalisation, &ls_mnist_normalisation) ? " (MNIST's constants)" : "");
	if (s->looked < info->samples)
		fprintf(to, "  of the first %" PRIu64 " sample%s:\n", s->looked, ls_plural(s->looked, "s"));
	fprintf(to, "  mean %.4f, deviation %.4f (of pixels, 0 to 1)\n", mean, sqrt(fmax(square - mean * mean, 0)));
	print_labels(info, s->labels, to);
	fprintf(to, "\n  xxh64 images %016" PRIx64 ", labels %016" PRIx64 "\n", s->image_hash, s->label_hash);
}

static ls_status image_info(const ls_dataset *set, const char *title, FILE *to)
{
	summary s;
	ls_status status = look_at(set, &s);
	if (!status)
		print_split(set, title, &s, to);
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

static ls_status split_info(const ls_dataset_options *options, ls_split split, FILE *to)
{
	ls_dataset_options wanted = *options;
	ls_dataset *set;
	wanted.split = split;
	LS_TRY(ls_dataset_open(&set, &wanted));
	if (split == LS_SPLIT_TRAIN)
		warn_of_idle_options(options, &set->info);
	const char *title = split == LS_SPLIT_TRAIN ? "train" : "test";
	ls_status status = set->info.tokens_max ? ls_info_text(set, title, to) : image_info(set, title, to);
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
	    ls_image_folder_is(o->name) || !ls_corpus_is_text(o->name) || ls_sst_is(o->name))
		return 0;
	return ls_corpus_home(home, sizeof(home), o->name) == LS_OK &&
	       ls_path_join(words, sizeof(words), home, "vocab.txt") == LS_OK && !ls_path_exists(words) &&
	       ls_path_join(pairs, sizeof(pairs), home, LS_BPE_VOCAB) == LS_OK && ls_path_exists(pairs);
}

ls_status ls_data_info_with(const ls_dataset_options *options, FILE *to)
{
	ls_dataset_options own = LS_DATASET_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, cache, "LS_DATASET_OPTIONS_INIT"));
	const char *name = own.name;
	int named = 0;
	own.next_token = own.next_token || (name && is_text_for_gpt(&own));
	for (size_t i = 0; name && ls_dataset_name_at(i); i++)
		named |= strcmp(ls_dataset_name_at(i), name) == 0;
	ls_status train = split_info(&own, LS_SPLIT_TRAIN, to);
	if (train && (named || train != LS_ENOTFOUND || !name || !ls_path_is_directory(name)))
		return train;
	if (train)
		return split_info(&own, LS_SPLIT_TEST, to);
	ls_status test = split_info(&own, LS_SPLIT_TEST, to);
	if (test == LS_ENOTFOUND && !named) {
		fprintf(to, "test: none\n");
		test = LS_OK;
	}
	if (!test && (fflush(to) != 0 || ferror(to)))
		return ls_fail_errno(LS_EIO, "cannot print the summary of '%s'", name);
	return test;
}

ls_status ls_data_info(const char *name_or_dir, const char *dir, FILE *to)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = name_or_dir;
	options.dir = dir;
	return ls_data_info_with(&options, to);
}
