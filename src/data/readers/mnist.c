/*
 * mnist.c - MNIST, Fashion-MNIST, and any directory of IDX files named like theirs.
 *
 * A split is an image file and a label file: train-images-idx3-ubyte and train-labels-idx1-ubyte, t10k-... for the test
 * set; '.idx3-ubyte' and a .gz suffix are understood, and idx4 for images with channels (n, c, h, w). Labels of more
 * than 256 classes are shorts or ints (idx1-short, idx1-int).
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/measure.h"
#include "data/normalise.h"
#include "data/readers/idx.h"

#define CLASSES_MAX (1 << 20) /* a larger label is an error */
#define CHANNELS_MAX 65536
#define NAMED_CLASSES 10

typedef struct idx_pair {
	ls_idx_file images, labels;
	char image_path[4096], label_path[4096];
	size_t values; /* of a sample */
} idx_pair;

static const char *const image_endings[] = { "-idx3-ubyte", ".idx3-ubyte", "-idx4-ubyte", ".idx4-ubyte", NULL };
static const char *const label_endings[] = { "-idx1-ubyte", ".idx1-ubyte", "-idx1-short", ".idx1-short",
					     "-idx1-int",   ".idx1-int",   NULL };

static const char *split_prefix(ls_split split)
{
	return split == LS_SPLIT_TRAIN ? "train" : "t10k";
}

/* *found = 0 when no spelling of the name exists; a plain file wins over its .gz. */
static ls_status find_file(char *path, size_t size, const char *dir, const char *stem, const char *const *endings,
			   int *found)
{
	static const char *const suffixes[] = { "", ".gz" };
	for (int gz = 0; gz < 2; gz++) {
		for (size_t i = 0; endings[i]; i++) {
			char name[64];
			snprintf(name, sizeof(name), "%s%s%s", stem, endings[i], suffixes[gz]);
			LS_TRY(ls_path_join(path, size, dir, name));
			*found = ls_path_exists(path);
			if (*found)
				return LS_OK;
		}
	}
	return LS_OK;
}

static ls_status find_labels(char *path, size_t size, const char *dir, ls_split split, int *found)
{
	char stem[32];
	snprintf(stem, sizeof(stem), "%s-labels", split_prefix(split));
	return find_file(path, size, dir, stem, label_endings, found);
}

static ls_status pair_find(idx_pair *pair, const char *dir, ls_split split)
{
	char stem[32];
	int found;
	snprintf(stem, sizeof(stem), "%s-images", split_prefix(split));
	LS_TRY(find_file(pair->image_path, sizeof(pair->image_path), dir, stem, image_endings, &found));
	if (!found)
		return ls_fail(LS_ENOTFOUND, "there is no %s-idx3-ubyte or %s-idx3-ubyte.gz in %s", stem, stem, dir);
	LS_TRY(find_labels(pair->label_path, sizeof(pair->label_path), dir, split, &found));
	if (!found)
		return ls_fail(LS_ENOTFOUND, "there is no %s-labels-idx1-ubyte or %s-labels-idx1-ubyte.gz in %s",
			       split_prefix(split), split_prefix(split), dir);
	return LS_OK;
}

static void pair_free(void *self)
{
	idx_pair *pair = self;
	ls_idx_close(&pair->labels);
	ls_idx_close(&pair->images);
	free(pair);
}

/* Check the headers alone, before inflating a small gzip file that declares a huge one. */
static ls_status pair_compare(const idx_pair *pair)
{
	ls_idx images, labels;
	LS_TRY(ls_idx_peek(&images, pair->image_path));
	LS_TRY(ls_idx_expect_images(&images, pair->image_path));
	LS_TRY(ls_idx_peek(&labels, pair->label_path));
	LS_TRY(ls_idx_expect_labels(&labels, pair->label_path));
	if (images.dims[0] != labels.dims[0])
		return ls_fail(LS_EMISMATCH, "%s holds %u images but %s holds %u labels", pair->image_path,
			       images.dims[0], pair->label_path, labels.dims[0]);
	return LS_OK;
}

static ls_status pair_load(idx_pair *pair)
{
	LS_TRY(pair_compare(pair));
	LS_TRY(ls_idx_open(&pair->images, pair->image_path));
	LS_TRY(ls_idx_open(&pair->labels, pair->label_path));
	uint32_t images = pair->images.idx.dims[0];
	if (images != pair->labels.idx.dims[0])
		return ls_fail(LS_EIO, "%s was replaced while it was opened", pair->image_path);
	pair->values = (size_t)(pair->images.idx.elements / images);
	return LS_OK;
}

static ls_status pair_check(void *self)
{
	const idx_pair *pair = self;
	LS_TRY(ls_file_map_check(&pair->images.map));
	return ls_file_map_check(&pair->labels.map);
}

static ls_status pair_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	const idx_pair *pair = self;
	memcpy(image, pair->images.idx.data + index * pair->values, pair->values);
	*label = ls_idx_label(&pair->labels.idx, index);
	return ls_file_map_lost(&pair->images.map) || ls_file_map_lost(&pair->labels.map) ? pair_check(self) : LS_OK;
}

/* The largest label; none may be negative or beyond `classes`. */
static ls_status labels_check(const ls_idx *labels, const char *path, int classes, int *max)
{
	*max = 0;
	for (uint64_t i = 0; i < labels->elements; i++) {
		int32_t label = ls_idx_label(labels, i);
		if (label < 0 || label >= classes)
			return ls_fail(LS_EFORMAT, "%s: label %d at index %llu, expected 0..%d: there are %s%d classes",
				       path, label, (unsigned long long)i, classes - 1,
				       classes == CLASSES_MAX ? "at most " : "", classes);
		*max = label > *max ? label : *max;
	}
	return LS_OK;
}

/* The training labels decide how many classes there are, for both splits: a model must fit them all. */
static ls_status count_classes(const idx_pair *pair, const char *dir, ls_split split, int *classes)
{
	char path[4096];
	int found = 0, max = 0;
	if (split == LS_SPLIT_TEST)
		LS_TRY(find_labels(path, sizeof(path), dir, LS_SPLIT_TRAIN, &found));
	ls_idx_file train = { 0 };
	if (found)
		LS_TRY(ls_idx_open(&train, path));
	ls_status status = found ? ls_idx_expect_labels(&train.idx, path) : LS_OK;
	if (!status)
		status = labels_check(found ? &train.idx : &pair->labels.idx, found ? path : pair->label_path,
				      CLASSES_MAX, &max);
	if (!status)
		*classes = max + 1;
	ls_idx_close(&train);
	return status;
}

static ls_status shape_check(const idx_pair *pair, const ls_dataset_info *info, int fixed_classes)
{
	if (fixed_classes && (info->channels != 1 || info->height != 28 || info->width != 28))
		return ls_fail(
			LS_EMISMATCH,
			"%s holds images of %d x %d x %d, MNIST's are 1 x 28 x 28; to train on another dataset give "
			"its directory as the dataset's name",
			pair->image_path, info->channels, info->height, info->width);
	int max;
	return labels_check(&pair->labels.idx, pair->label_path, info->classes, &max);
}

/* Many programs store images as (n, h, w, c), and the header does not record the order. */
static ls_status order_check(const idx_pair *pair)
{
	const uint32_t *d = pair->images.idx.dims;
	if (pair->images.idx.rank != 4 || (d[3] != 1 && d[3] != 3 && d[3] != 4) || d[1] <= 4 || d[2] <= 4)
		return LS_OK;
	return ls_fail(
		LS_EFORMAT,
		"%s: %u images of %u x %u x %u look like (n, h, w, c), with the channels last; the order must be "
		"(n, c, h, w): %u x %u x %u x %u (numpy: images.transpose(0, 3, 1, 2))",
		pair->image_path, d[0], d[1], d[2], d[3], d[0], d[3], d[1], d[2]);
}

static ls_status pair_describe(const idx_pair *pair, const char *dir, const ls_dataset_options *options,
			       int fixed_classes, ls_dataset_info *info)
{
	const ls_idx *images = &pair->images.idx;
	const uint32_t *size = images->dims + images->rank - 2; /* h, w */
	uint32_t channels = images->rank == 4 ? images->dims[1] : 1;
	LS_TRY(order_check(pair));
	if (size[0] > INT32_MAX || size[1] > INT32_MAX || channels > CHANNELS_MAX)
		return ls_fail(LS_EFORMAT, "%s: images of %u x %u x %u are too large; they have at most %d channels",
			       pair->image_path, channels, size[0], size[1], CHANNELS_MAX);
	*info = (ls_dataset_info){ .samples = images->dims[0],
				   .channels = (int)channels,
				   .height = (int)size[0],
				   .width = (int)size[1],
				   .classes = fixed_classes };
	const char *slash = strrchr(options->name, '/');
	const char *name = slash && slash[1] ? slash + 1 : options->name;
	snprintf(info->name, sizeof(info->name), "%.*s", (int)sizeof(info->name) - 1, name);
	if (options->samples && options->samples < info->samples)
		info->samples = options->samples;
	if (!fixed_classes && options->classes > 0)
		info->classes = options->classes;
	else if (!fixed_classes)
		LS_TRY(count_classes(pair, dir, options->split, &info->classes));
	return shape_check(pair, info, fixed_classes);
}

static ls_status measure(const ls_idx *images, const ls_dataset_info *info, ls_normalisation *out)
{
	return ls_normalisation_measure(out, images->data, images->dims[0], info->channels,
					(size_t)info->height * (size_t)info->width);
}

/* The training images decide for both splits. */
static ls_status measure_train(const idx_pair *pair, const char *dir, const ls_dataset_info *info,
			       ls_normalisation *out)
{
	idx_pair train = { .values = 0 };
	if (pair_find(&train, dir, LS_SPLIT_TRAIN) != LS_OK)
		return measure(&pair->images.idx, info, out);
	LS_TRY(ls_idx_open(&train.images, train.image_path));
	const ls_idx *idx = &train.images.idx;
	ls_status status = ls_idx_expect_images(idx, train.image_path);
	if (!status && idx->elements / idx->dims[0] != pair->values)
		status = ls_fail(LS_EMISMATCH, "%s holds images of another size than %s", train.image_path,
				 pair->image_path);
	if (!status)
		status = measure(idx, info, out);
	if (!status) {
		status = ls_file_map_check(&train.images.map);
		if (status)
			ls_normalisation_release(out);
	}
	ls_idx_close(&train.images);
	return status;
}

/* In this order: the caller's constants (of trained weights), the file in the directory, measured over the images. */
static ls_status find_normalisation(const idx_pair *pair, const char *dir, const ls_dataset_options *options,
				    const ls_dataset_info *info, ls_normalisation *out)
{
	int found = 0;
	if (options->normalisation)
		return ls_normalisation_copy(out, options->normalisation);
	LS_TRY(ls_normalisation_read(out, dir, info->channels, &found));
	if (found)
		return LS_OK;
	return options->split == LS_SPLIT_TRAIN ? measure(&pair->images.idx, info, out)
						: measure_train(pair, dir, info, out);
}

/* A named dataset has ten classes and its own constants; for other directories both come from the files. */
static ls_status pair_open(ls_dataset **out, const char *dir, const ls_dataset_options *options,
			   const ls_normalisation *constants)
{
	const int fixed_classes = constants ? NAMED_CLASSES : 0;
	idx_pair *pair = calloc(1, sizeof(*pair));
	if (!pair)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	ls_dataset_info info;
	ls_normalisation own = { 0 };
	ls_status status = pair_find(pair, dir, options->split);
	if (!status)
		status = pair_load(pair);
	if (!status)
		status = pair_describe(pair, dir, options, fixed_classes, &info);
	if (!status && !fixed_classes)
		status = find_normalisation(pair, dir, options, &info, &own);
	if (!status)
		status = pair_check(pair);
	if (!status)
		status = ls_dataset_new_bytes(out, &info, constants ? constants : &own, pair_read, pair_free, pair);
	ls_normalisation_release(&own);
	if (status) {
		pair_free(pair);
		return status;
	}
	(*out)->check = pair_check;
	(*out)->label_file = pair->label_path;
	return LS_OK;
}

int ls_directory_is(const char *dir)
{
	char path[4096];
	int train = 0, test = 0;
	return (find_file(path, sizeof(path), dir, "train-images", image_endings, &train) == LS_OK && train) ||
	       (find_file(path, sizeof(path), dir, "t10k-images", image_endings, &test) == LS_OK && test);
}

ls_status ls_directory_open(ls_dataset **out, const ls_dataset_options *options)
{
	return pair_open(out, options->name, options, NULL);
}

/* `folder`: of its files in the cache, and the name to get them by; bigmnist has MNIST's. */
static ls_status open_named(ls_dataset **out, const ls_dataset_options *options, const char *folder,
			    const ls_normalisation *constants)
{
	char dir[4096], why[4200];
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, folder));
	ls_status status = pair_open(out, dir, options, constants);
	if (status != LS_ENOTFOUND)
		return status;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(LS_ENOTFOUND,
		       "%s is not on this machine: %s; run `lockstep data get %s` or use `options.data glyphs`",
		       options->name, why, folder);
}

ls_status ls_mnist_open(ls_dataset **out, const ls_dataset_options *options)
{
	return open_named(out, options, "mnist", &ls_mnist_normalisation);
}

ls_status ls_fashion_mnist_open(ls_dataset **out, const ls_dataset_options *options)
{
	return open_named(out, options, "fashion-mnist", &ls_fashion_mnist_normalisation);
}
