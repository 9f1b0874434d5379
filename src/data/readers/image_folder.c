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
#include <sys/stat.h>
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
enum { COLOURS_LOOKED = 16 };             /* images, evenly spread, that decide between grey and colours */
enum { SIDE_PLAIN = 512 };                /* larger images are scaled to a size that the user chooses */

/* Bump this when decoding, orientation or scaling give other bytes: caches of the older ones are replaced. */
enum { DECODING = 2 };

typedef struct folder {
	ls_image_list list;
	ls_image_shape shape;
	ls_image_cache *cache; /* NULL: none; of all images of the split */
	uint64_t samples;      /* that are used: all, or some evenly spread ones */
} folder;

static void folder_free(void *self)
{
	folder *f = self;
	ls_image_cache_close(f->cache);
	ls_image_list_release(&f->list);
	free(f);
}

/* ---- one image ----------------------------------------------------------------------------------------------------- */

/* Where sample `index` is in the list: the first N of a list in the order of classes would be of few classes. */
static uint64_t place_of(const folder *f, uint64_t index)
{
	return f->samples == f->list.count ? index : f->list.count * index / f->samples;
}

static ls_status path_of(const folder *f, uint64_t place, char *path, size_t size)
{
	return ls_path_join(path, size, f->list.root, f->list.entry[place].path);
}

/* A file that is not what was listed would be kept under the wrong key, and other nodes may have read the old one. */
static ls_status check_unchanged(const folder *f, uint64_t place, const char *path)
{
	const ls_image_entry *e = &f->list.entry[place];
	struct stat now;

	if (stat(path, &now) == 0 && now.st_size == e->bytes &&
	    (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec == e->modified_ns)
		return LS_OK;
	return ls_fail(LS_EIO, "%s has changed since the dataset was opened", path);
}

/* shape: what it will be scaled to. */
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

static ls_status decode(const folder *f, uint64_t place, uint8_t *bytes)
{
	size_t values = (size_t)f->shape.channels * (size_t)f->shape.height * (size_t)f->shape.width;
	char path[4096];
	ls_image image = { 0 };

	LS_TRY(path_of(f, place, path, sizeof(path)));
	LS_TRY(check_unchanged(f, place, path));
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
	uint64_t place = place_of(f, index);

	*label = f->list.entry[place].label;
	if (f->cache && ls_image_cache_get(f->cache, place, bytes))
		return LS_OK;
	LS_TRY(decode(f, place, bytes));
	if (f->cache)
		ls_image_cache_put(f->cache, place, bytes);
	return LS_OK;
}

/* ---- the shape ----------------------------------------------------------------------------------------------------- */

static ls_status peek(const folder *f, uint64_t place, ls_image_shape *out, char *path, size_t size)
{
	ls_file_map map;

	LS_TRY(path_of(f, place, path, size));
	LS_TRY(ls_file_map_open(&map, path));
	return ls_file_map_end(&map, ls_image_peek(out, map.data, map.bytes, path));
}

/* A square of options.image_size; without it, the size of the first image. Grey where none of some evenly spread images has
 * colours. */
static ls_status find_shape(folder *f, int64_t size)
{
	uint64_t looked = f->list.count < COLOURS_LOOKED ? f->list.count : COLOURS_LOOKED;
	ls_image_shape first, other;
	char path[4096];

	if (size < 0 || size > LS_IMAGE_SIDE_MAX)
		return ls_fail(LS_EINVALID,
			       "options.image_size must be 1 to %d, or 0 for the size of the first image, not %lld",
			       LS_IMAGE_SIDE_MAX, (long long)size);
	for (uint64_t i = looked; i-- > 1;) {
		LS_TRY(peek(f, f->list.count * i / looked, &other, path, sizeof(path)));
		f->shape.channels = other.channels > f->shape.channels ? other.channels : f->shape.channels;
	}
	LS_TRY(peek(f, 0, &first, path, sizeof(path)));
	f->shape =
		(ls_image_shape){ .channels = first.channels > f->shape.channels ? first.channels : f->shape.channels,
				  .height = size > 0 ? (int)size : first.height,
				  .width = size > 0 ? (int)size : first.width };
	if (size > 0 || (first.height <= SIDE_PLAIN && first.width <= SIDE_PLAIN))
		return LS_OK;
	return ls_fail(
		LS_EINVALID,
		"%s has %dx%d pixels: set options.image_size to the side of the squares that images are scaled to; "
		"224 is usual",
		path, first.width, first.height);
}

/* Mean and deviation of the training images: of all, or of some evenly spread ones. */
static ls_status measure(folder *f, ls_normalisation *out)
{
	size_t values = (size_t)f->shape.channels * (size_t)f->shape.height * (size_t)f->shape.width;
	uint64_t most = MEASURED_BYTES / values < MEASURED ? MEASURED_BYTES / values + 1 : MEASURED;
	uint64_t looked = f->samples < most ? f->samples : most;
	uint8_t *bytes = malloc(values * looked);
	ls_status status = bytes ? LS_OK : ls_fail(LS_EMEMORY, "no memory to measure %" PRIu64 " images", looked);
	double begun = ls_clock_seconds();
	int is_noted = 0;
	int32_t label;

	for (uint64_t i = 0; status == LS_OK && i < looked; i++) {
		status = folder_read(f, f->samples * i / looked, bytes + i * values, &label);
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
static ls_status find_key(const folder *f, uint64_t *key)
{
	XXH64_state_t *state = XXH64_createState();

	if (!state)
		return ls_fail(LS_EMEMORY, "no memory to hash the names of %zu images", f->list.count);
	XXH64_reset(state, DECODING);
	XXH64_update(state, &f->shape, sizeof(f->shape));
	for (size_t i = 0; i < f->list.count; i++) {
		const ls_image_entry *e = &f->list.entry[i];
		XXH64_update(state, e->path, strlen(e->path) + 1);
		XXH64_update(state, &e->bytes, sizeof(e->bytes));
		XXH64_update(state, &e->modified_ns, sizeof(e->modified_ns));
	}
	*key = XXH64_digest(state);
	XXH64_freeState(state);
	return LS_OK;
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
	uint64_t key = 0;
	int is_asked = o->cache && strcmp(o->cache, "auto") != 0;

	if (o->cache && !strcmp(o->cache, "off"))
		return LS_OK;
	LS_TRY(find_key(f, &key));
	ls_status status = cache_path(f, o, name, path, sizeof(path));
	if (status == LS_OK)
		status = ls_image_cache_open(&f->cache, &(ls_image_cache_options){ .path = path,
										   .key = key,
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
	*info = (ls_dataset_info){ .samples = f->samples,
				   .channels = f->shape.channels,
				   .height = f->shape.height,
				   .width = f->shape.width,
				   .classes = (int)f->list.classes };
	snprintf(info->name, sizeof(info->name), "%.63s", slash && slash[1] ? slash + 1 : name);
}

/* Test images have the shape and the normalisation of training images. */
static ls_status follow_training(folder *f, const ls_dataset_options *o, ls_normalisation *n)
{
	ls_dataset_options of_train = *o;
	ls_dataset *train = NULL;

	of_train.split = LS_SPLIT_TRAIN;
	of_train.samples = 0;
	if (o->normalisation) /* then only the shape is asked for */
		of_train.cache = "off";
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
	if (o->split == LS_SPLIT_TEST && f->list.is_split)
		ls_log_note(
			"%s has no folder of test images: one image in ten, by a hash of its name, is for tests (%zu)",
			o->name, f->list.count);
	if (o->split == LS_SPLIT_TRAIN)
		LS_TRY(find_shape(f, o->image_size));
	f->samples = o->samples > 0 && o->samples < f->list.count ? o->samples : f->list.count;
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
