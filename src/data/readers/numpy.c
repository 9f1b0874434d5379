/*
 * numpy.c - NumPy arrays as a dataset: an .npz archive, or a directory of .npy files.
 *
 *     digits.npz               x_train, y_train, x_test, y_test, as Keras has them; also train_images, train_labels ...
 *     digits/x_train.npy ...   the same as files
 *     images, labels           one set, of which one image in ten, by a hash of its number, is for tests
 *
 * Files are mapped and not loaded, as are members of an archive that numpy.savez() wrote; those of savez_compressed()
 * are inflated once. Arrays of integers from 0 to 255 train to the same bits as the IDX files of the same images.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/measure.h"
#include "data/normalise.h"
#include "data/readers/numpy_array.h"
#include "data/test_part.h"

#define CLASSES_MAX (1 << 20) /* a larger label is an error */
enum { NAMES = 6 };

/* The names that a pair of arrays goes by. */
typedef struct pair_names {
	const char *images[NAMES], *labels[NAMES]; /* NULL at the end */
} pair_names;

static const pair_names train_names = { { "x_train", "X_train", "train_images", "train_x", "images_train" },
					{ "y_train", "Y_train", "train_labels", "train_y", "labels_train" } };
static const pair_names test_names = { { "x_test", "X_test", "test_images", "test_x", "images_test" },
				       { "y_test", "Y_test", "test_labels", "test_y", "labels_test" } };
static const pair_names single_names = { { "images", "x", "X", "data" }, { "labels", "y", "Y", "targets" } };

int ls_numpy_is(const char *path)
{
	const char *const *const kinds[] = { train_names.images, test_names.images, single_names.images };
	char file[4096], name[64];

	for (size_t k = 0; ls_path_is_directory(path) && k < LS_COUNT(kinds); k++)
		for (size_t i = 0; kinds[k][i]; i++) {
			snprintf(name, sizeof(name), "%s.npy", kinds[k][i]);
			if (ls_path_join(file, sizeof(file), path, name) == LS_OK && ls_path_exists(file))
				return 1;
		}
	return ls_numpy_is_archive(path);
}

/* ---- a split ----------------------------------------------------------------------------------------------------- */

typedef struct numpy {
	ls_numpy_array images, labels;
	ls_npy_images shape;
	uint64_t *place; /* (samples) of a set that is split by number: where a sample is; NULL: at its index */
} numpy;

static void numpy_free(void *self)
{
	numpy *n = self;
	ls_numpy_array_close(&n->images);
	ls_numpy_array_close(&n->labels);
	free(n->place);
	free(n);
}

static ls_status numpy_check(void *self)
{
	const numpy *n = self;
	LS_TRY(ls_file_map_check(&n->images.map));
	return ls_file_map_check(&n->labels.map);
}

static const uint8_t *row_at(const numpy *n, uint64_t index, uint64_t *at, int32_t *label)
{
	*at = n->place ? n->place[index] : index;
	*label = (int32_t)ls_npy_integer(&n->labels.npy, *at);
	return n->images.npy.data + *at * n->shape.row_bytes;
}

/* A file that is cut short reads as zeros from there on. */
static ls_status whole(numpy *n, ls_status status)
{
	int is_lost = ls_file_map_lost(&n->images.map) || ls_file_map_lost(&n->labels.map);
	return is_lost ? numpy_check(n) : status;
}

static ls_status numpy_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	numpy *n = self;
	uint64_t at;
	const uint8_t *row = row_at(n, index, &at, label);
	return whole(n, ls_npy_to_bytes(&n->shape, row, at, n->images.name, image));
}

static ls_status numpy_read_floats(void *self, uint64_t index, float *image, int32_t *label)
{
	numpy *n = self;
	uint64_t at;
	const uint8_t *row = row_at(n, index, &at, label);
	return whole(n, ls_npy_to_floats(&n->shape, row, at, n->images.name, image));
}

static ls_status open_pair(numpy *n, const char *path, const pair_names *names, int *found)
{
	int has_labels = 0;

	LS_TRY(ls_numpy_array_open(&n->images, path, names->images, found));
	if (!*found)
		return LS_OK;
	LS_TRY(ls_numpy_array_open(&n->labels, path, names->labels, &has_labels));
	if (!has_labels)
		return ls_fail(LS_ENOTFOUND, "%s: there are images but no labels: expected an array '%s'",
			       n->images.name, names->labels[0]);
	LS_TRY(ls_npy_as_images(&n->shape, &n->images.npy, n->images.name));
	LS_TRY(ls_npy_expect_labels(&n->labels.npy, n->labels.name));
	if (n->labels.npy.dims[0] != n->shape.samples)
		return ls_fail(LS_EMISMATCH, "%s has %" PRIu64 " images, but %s has %" PRIu64 " labels", n->images.name,
			       n->shape.samples, n->labels.name, n->labels.npy.dims[0]);
	return LS_OK;
}

/* One set for both: the samples of a split. */
static ls_status choose_places(numpy *n, ls_split split, uint64_t *samples)
{
	uint64_t count = 0;

	n->place = malloc(n->shape.samples * sizeof(*n->place));
	if (!n->place)
		return ls_fail(LS_EMEMORY, "no memory to split %" PRIu64 " images", n->shape.samples);
	for (uint64_t i = 0; i < n->shape.samples; i++)
		if (ls_hash_is_in(XXH64(&i, sizeof(i), 0), split))
			n->place[count++] = i;
	*samples = count;
	return count > 0 ? LS_OK
			 : ls_fail(LS_ENOTFOUND,
				   "%s has no %s images: one in ten, by a hash of its number, is for tests; add x_test "
				   "and y_test, or more images",
				   n->images.name, split == LS_SPLIT_TEST ? "test" : "training");
}

/* The arrays of a split, and how many samples they have. */
static ls_status open_split(numpy *n, const char *path, ls_split split, uint64_t *samples)
{
	int found = 0, has_train = 0;
	ls_numpy_array train = { .inflated = NULL };

	LS_TRY(open_pair(n, path, split == LS_SPLIT_TEST ? &test_names : &train_names, &found));
	*samples = n->shape.samples;
	if (found)
		return LS_OK;
	if (split == LS_SPLIT_TEST)
		LS_TRY(ls_numpy_array_open(&train, path, train_names.images, &has_train));
	ls_numpy_array_close(&train);
	if (!has_train)
		LS_TRY(open_pair(n, path, &single_names, &found));
	if (found)
		return choose_places(n, split, samples);
	return ls_fail(LS_ENOTFOUND,
		       "%s has no array %s: expected x_train, y_train, x_test and y_test, or images and labels", path,
		       split == LS_SPLIT_TEST ? "x_test" : "x_train");
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* The largest label of an array; none may be negative or beyond `classes`. */
static ls_status check_labels(const ls_numpy_array *labels, int64_t classes, int *largest)
{
	*largest = 0;
	for (uint64_t i = 0; i < labels->npy.dims[0]; i++) {
		int64_t label = ls_npy_integer(&labels->npy, i);
		if (label < 0 || label >= classes)
			return ls_fail(LS_EFORMAT,
				       "%s: label %" PRId64 " at index %" PRIu64 ", expected 0..%" PRId64
				       ": there are %s%" PRId64 " classes",
				       labels->name, label, i, classes - 1, classes == CLASSES_MAX ? "at most " : "",
				       classes);
		*largest = label > *largest ? (int)label : *largest;
	}
	return ls_file_map_check(&labels->map);
}

/* As many as the training labels need, unless the caller knows. */
static ls_status count_classes(const numpy *n, const ls_dataset_options *o, int *classes)
{
	ls_numpy_array train = { .inflated = NULL };
	int largest = 0, found = 0;

	*classes = o->classes;
	if (o->classes <= 0) {
		if (o->split == LS_SPLIT_TEST && !n->place)
			LS_TRY(ls_numpy_array_open(&train, o->name, train_names.labels, &found));
		ls_status status = found ? ls_npy_expect_labels(&train.npy, train.name) : LS_OK;
		if (status == LS_OK)
			status = check_labels(found ? &train : &n->labels, CLASSES_MAX, &largest);
		ls_numpy_array_close(&train);
		LS_TRY(status);
		*classes = largest + 1;
	}
	return check_labels(&n->labels, *classes, &largest);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static ls_status measure(numpy *n, uint64_t samples, ls_normalisation *out)
{
	const ls_image_source source = { .channels = n->shape.channels,
					 .positions = (size_t)n->shape.height * (size_t)n->shape.width,
					 .samples = samples,
					 .read_bytes = n->shape.is_float ? NULL : numpy_read,
					 .read_floats = numpy_read_floats,
					 .self = n };
	return ls_normalisation_measure_source(out, &source);
}

/* The caller's constants, else those of the training images, which decide for both splits. */
static ls_status find_normalisation(numpy *n, const ls_dataset_options *o, uint64_t samples, ls_normalisation *out)
{
	numpy train = { .place = NULL };
	uint64_t count = 0;

	if (o->normalisation)
		return ls_normalisation_copy(out, o->normalisation);
	if (o->split == LS_SPLIT_TRAIN)
		return measure(n, samples, out);
	ls_status status = open_split(&train, o->name, LS_SPLIT_TRAIN, &count);
	if (status == LS_OK && (train.shape.channels != n->shape.channels || train.shape.height != n->shape.height ||
				train.shape.width != n->shape.width || train.shape.is_float != n->shape.is_float))
		status = ls_fail(LS_EMISMATCH, "%s has images of another size or type than %s", train.images.name,
				 n->images.name);
	if (status == LS_OK)
		status = measure(&train, count, out);
	else if (status == LS_ENOTFOUND)
		status = measure(n, samples, out);
	ls_numpy_array_close(&train.images);
	ls_numpy_array_close(&train.labels);
	free(train.place);
	return status;
}

static void describe(const numpy *n, const ls_dataset_options *o, uint64_t samples, ls_dataset_info *info)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s", o->name);
	for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
		name[end - 1] = '\0';
	const char *slash = strrchr(name, '/');
	*info = (ls_dataset_info){ .samples = o->samples > 0 && o->samples < samples ? o->samples : samples,
				   .channels = n->shape.channels,
				   .height = n->shape.height,
				   .width = n->shape.width };
	snprintf(info->name, sizeof(info->name), "%.63s", slash && slash[1] ? slash + 1 : name);
}

/* Four dimensions can be meant in two ways. */
static void say_layout(const numpy *n, const ls_dataset_options *o)
{
	if (o->split == LS_SPLIT_TRAIN && n->images.npy.rank == 4)
		ls_log_note("%s: %" PRIu64 " images of %dx%d pixels and %d channel%s, taken as %s", n->images.name,
			    n->shape.samples, n->shape.width, n->shape.height, n->shape.channels,
			    n->shape.channels == 1 ? "" : "s",
			    n->shape.is_channels_last ? "(N, H, W, C), channels last" : "(N, C, H, W), channels first");
	if (o->split == LS_SPLIT_TEST && n->place)
		ls_log_note("%s has no test images: one image in ten, by a hash of its number, is for tests", o->name);
}

static ls_status numpy_make(numpy *n, ls_dataset **out, const ls_dataset_options *o, ls_normalisation *constants)
{
	ls_dataset_info info;
	uint64_t samples = 0;

	LS_TRY(open_split(n, o->name, o->split, &samples));
	describe(n, o, samples, &info);
	LS_TRY(count_classes(n, o, &info.classes));
	say_layout(n, o);
	LS_TRY(find_normalisation(n, o, samples, constants));
	LS_TRY(numpy_check(n));
	LS_TRY(n->shape.is_float ? ls_dataset_new_floats(out, &info, constants, numpy_read_floats, numpy_free, n)
				 : ls_dataset_new_bytes(out, &info, constants, numpy_read, numpy_free, n));
	(*out)->check = numpy_check;
	(*out)->label_file = n->labels.name;
	return LS_OK;
}

ls_status ls_numpy_open(ls_dataset **out, const ls_dataset_options *options)
{
	numpy *n = calloc(1, sizeof(*n));
	ls_normalisation constants = { 0 };

	if (!n)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	ls_status status = numpy_make(n, out, options, &constants);
	ls_normalisation_release(&constants);
	if (status != LS_OK)
		numpy_free(n);
	return status;
}
