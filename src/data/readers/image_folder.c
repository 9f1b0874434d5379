/*
 * image_folder.c - a folder of image files as a dataset: a folder per class (image_list.h).
 *
 * Every image becomes (channels, height, width) bytes: decoded, made grey or colour, scaled so that it covers the size,
 * cut in the middle, rounded. That is a function of the file and the shape alone, so the bits of a training do not depend on
 * which thread decodes what, nor on whether it was decoded before: decoded images are kept in a file of the data cache
 * (image_cache.h).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/images/image.h"
#include "data/normalise.h"
#include "data/readers/image_cache.h"
#include "data/readers/image_list.h"

#define PIXELS_MAX ((uint64_t)1 << 27)    /* of a file: 11,585 x 11,585 */
enum { MEASURED = 1024 };                 /* images, evenly spread, that mean and deviation are measured on */
#define MEASURED_BYTES ((size_t)64 << 20) /* or fewer, where they are large */
#define PATIENCE 2.0                      /* seconds without a word */
enum { SIDE_PLAIN = 512 };                /* larger images are scaled to a size that the user chooses */

typedef struct folder {
	ls_image_list list;
	ls_image_shape shape;
	ls_image_cache *cache; /* NULL: none */
} folder;

static void folder_free(void *self)
{
	folder *f = self;
	ls_image_cache_close(f->cache);
	ls_image_list_release(&f->list);
	free(f);
}

/* ---- one image ----------------------------------------------------------------------------------------------------- */

static ls_status path_of(const folder *f, uint64_t index, char *path, size_t size)
{
	return ls_path_join(path, size, f->list.root, f->list.entry[index].path);
}

/* shape: of the result; NULL: it is wanted as it is. */
static ls_status decode_file(ls_image *out, const char *path, const ls_image_shape *shape)
{
	ls_file_map map;

	LS_TRY(ls_file_map_open(&map, path));
	return ls_file_map_end(&map, ls_image_decode_for(out, map.data, map.bytes, path, PIXELS_MAX, shape));
}

static void round_pixels(const float *pixels, size_t count, uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++) {
		float rounded = rintf(pixels[i]);
		bytes[i] = rounded < 0 ? 0 : rounded > 255 ? 255 : (uint8_t)rounded;
	}
}

static ls_status decode(const folder *f, uint64_t index, uint8_t *bytes)
{
	size_t values = (size_t)f->shape.channels * (size_t)f->shape.height * (size_t)f->shape.width;
	char path[4096];
	ls_image image = { 0 };

	LS_TRY(path_of(f, index, path, sizeof(path)));
	LS_TRY(decode_file(&image, path, &f->shape));
	float *pixels = malloc(values * sizeof(*pixels));
	ls_status status = pixels ? ls_image_resize(&image, LS_RESIZE_COVER, f->shape, pixels, path)
				  : ls_fail(LS_EMEMORY, "%s: no memory to scale it", path);
	if (status == LS_OK)
		round_pixels(pixels, values, bytes);
	free(pixels);
	ls_image_release(&image);
	return status;
}

static ls_status folder_read(void *self, uint64_t index, uint8_t *bytes, int32_t *label)
{
	const folder *f = self;

	*label = f->list.entry[index].label;
	if (f->cache && ls_image_cache_get(f->cache, index, bytes))
		return LS_OK;
	LS_TRY(decode(f, index, bytes));
	if (f->cache)
		ls_image_cache_put(f->cache, index, bytes);
	return LS_OK;
}

/* ---- the shape ----------------------------------------------------------------------------------------------------- */

/* That of options.image_size; without it, that of the first image. Grey where the first image is grey. */
static ls_status find_shape(folder *f, int64_t size)
{
	char path[4096];
	ls_image image = { 0 };

	LS_TRY(path_of(f, 0, path, sizeof(path)));
	LS_TRY(decode_file(&image, path, NULL));
	int height = image.height, width = image.width;
	f->shape = (ls_image_shape){ .channels = image.channels,
				     .height = size > 0 ? (int)size : height,
				     .width = size > 0 ? (int)size : width };
	ls_image_release(&image);
	if (size == 0 && (height > SIDE_PLAIN || width > SIDE_PLAIN))
		return ls_fail(LS_EINVALID,
			       "%s has %dx%d pixels: set options.image_size to the side of the squares that images are "
			       "scaled to; 224 is usual",
			       path, width, height);
	return LS_OK;
}

/* Mean and deviation of the training images: of all, or of some evenly spread ones. */
static ls_status measure(folder *f, ls_normalisation *out)
{
	size_t values = (size_t)f->shape.channels * (size_t)f->shape.height * (size_t)f->shape.width;
	uint64_t most = MEASURED_BYTES / values < MEASURED ? MEASURED_BYTES / values + 1 : MEASURED;
	uint64_t looked = f->list.count < most ? f->list.count : most;
	uint8_t *bytes = malloc(values * looked);
	ls_status status = bytes ? LS_OK : ls_fail(LS_EMEMORY, "no memory to measure %" PRIu64 " images", looked);
	double begun = ls_clock_seconds();
	int is_noted = 0;
	int32_t label;

	for (uint64_t i = 0; status == LS_OK && i < looked; i++) {
		status = folder_read(f, f->list.count * i / looked, bytes + i * values, &label);
		if (is_noted || ls_clock_seconds() - begun < PATIENCE)
			continue;
		ls_log_note("decoding %" PRIu64 " images of %s to measure their mean and deviation", looked,
			    f->list.root);
		is_noted = 1;
	}
	if (status == LS_OK)
		status = ls_normalisation_measure(out, bytes, looked, f->shape.channels,
						  (size_t)f->shape.height * (size_t)f->shape.width);
	free(bytes);
	return status;
}

/* ---- the cache ----------------------------------------------------------------------------------------------------- */

/* All that decides about the decoded bytes. */
static uint64_t key_of(const folder *f)
{
	XXH64_state_t *state = XXH64_createState();
	uint64_t key = 0;

	if (!state)
		return 0;
	XXH64_reset(state, 0);
	XXH64_update(state, &f->shape, sizeof(f->shape));
	for (size_t i = 0; i < f->list.count; i++) {
		const ls_image_entry *e = &f->list.entry[i];
		XXH64_update(state, e->path, strlen(e->path) + 1);
		XXH64_update(state, &e->bytes, sizeof(e->bytes));
		XXH64_update(state, &e->modified_ns, sizeof(e->modified_ns));
	}
	key = XXH64_digest(state);
	XXH64_freeState(state);
	return key;
}

/* "<cache>/images/pets-28x28x1-train-0123456789abcdef.cache": a file for each folder, shape and split. */
static ls_status cache_path(const folder *f, const ls_dataset_options *o, const char *name, char *out, size_t size)
{
	const char *given = o->cache && strcmp(o->cache, "auto") != 0 ? o->cache : NULL;
	char dir[4096], file[256], *real = realpath(f->list.root, NULL);

	if (!real)
		return ls_fail_errno(LS_EIO, "cannot find %s", f->list.root);
	uint64_t place = XXH64(real, strlen(real), 0);
	free(real);
	if (given)
		snprintf(dir, sizeof(dir), "%s", given);
	else
		LS_TRY(ls_path_join(dir, sizeof(dir), ls_data_cache(), "images"));
	LS_TRY(ls_path_make(dir));
	snprintf(file, sizeof(file), "%.63s-%dx%dx%d-%s-%016" PRIx64 ".cache", name, f->shape.width, f->shape.height,
		 f->shape.channels, o->split == LS_SPLIT_TRAIN ? "train" : "test", place);
	return ls_path_join(out, size, dir, file);
}

/* A cache that was asked for must be there; without one that is only convenient, images are decoded every time. */
static ls_status open_cache(folder *f, const ls_dataset_options *o, const char *name)
{
	char path[4096];
	int is_asked = o->cache && strcmp(o->cache, "auto") != 0;

	if (o->cache && !strcmp(o->cache, "off"))
		return LS_OK;
	ls_status status = cache_path(f, o, name, path, sizeof(path));
	if (status == LS_OK)
		status = ls_image_cache_open(&f->cache, &(ls_image_cache_options){ .path = path,
										   .key = key_of(f),
										   .images = f->list.count,
										   .bytes = (size_t)f->shape.channels *
											    (size_t)f->shape.height *
											    (size_t)f->shape.width });
	if (status == LS_OK || is_asked || status == LS_EMEMORY)
		return status;
	ls_log_warning("decoded images are not kept, every epoch decodes them again: %s", ls_last_error());
	return LS_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static void describe(const folder *f, const ls_dataset_options *o, ls_dataset_info *info)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s", o->name);
	for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
		name[end - 1] = '\0';
	const char *slash = strrchr(name, '/');
	*info = (ls_dataset_info){ .samples = f->list.count,
				   .channels = f->shape.channels,
				   .height = f->shape.height,
				   .width = f->shape.width,
				   .classes = (int)f->list.classes };
	snprintf(info->name, sizeof(info->name), "%.63s", slash && slash[1] ? slash + 1 : name);
}

/* The first N of a list that is in the order of classes would be of few classes: N evenly spread ones. */
static void limit(ls_image_list *l, uint64_t samples)
{
	if (samples == 0 || samples >= l->count)
		return;
	for (uint64_t i = 0; i < samples; i++)
		l->entry[i] = l->entry[(uint64_t)l->count * i / samples];
	l->count = samples;
}

/* Test images have the shape and the normalisation of training images. */
static ls_status follow_training(folder *f, const ls_dataset_options *o, ls_normalisation *n)
{
	ls_dataset_options of_train = *o;
	ls_dataset *train = NULL;

	of_train.split = LS_SPLIT_TRAIN;
	of_train.samples = 0;
	LS_TRY(ls_image_folder_open(&train, &of_train));
	const ls_dataset_info *info = ls_dataset_describe(train);
	f->shape = (ls_image_shape){ .channels = info->channels, .height = info->height, .width = info->width };
	ls_status status = ls_normalisation_copy(n, ls_dataset_normalisation(train));
	ls_dataset_free(train);
	return status;
}

static ls_status open_folder(folder *f, ls_dataset **out, const ls_dataset_options *o, ls_normalisation *n)
{
	ls_dataset_info info;

	if (o->split == LS_SPLIT_TEST)
		LS_TRY(follow_training(f, o, n));
	LS_TRY(ls_image_list_read(&f->list, o->name, o->split));
	if (o->split == LS_SPLIT_TRAIN)
		LS_TRY(find_shape(f, o->image_size));
	limit(&f->list, o->samples);
	describe(f, o, &info);
	LS_TRY(open_cache(f, o, info.name));
	if (n->channels == 0)
		LS_TRY(o->normalisation ? ls_normalisation_copy(n, o->normalisation) : measure(f, n));
	LS_TRY(ls_dataset_new_bytes(out, &info, n, folder_read, folder_free, f));
	(*out)->class_names = f->list.class_name;
	return LS_OK;
}

ls_status ls_image_folder_open(ls_dataset **out, const ls_dataset_options *options)
{
	folder *f = calloc(1, sizeof(*f));
	ls_normalisation n = { 0 };

	if (!f)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	ls_status status = open_folder(f, out, options, &n);
	ls_normalisation_release(&n);
	if (status != LS_OK)
		folder_free(f);
	return status;
}
