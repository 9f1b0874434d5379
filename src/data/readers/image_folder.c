/*
 * image_folder.c - image files as a dataset: a folder per class, or tar shards (image_list.h).
 *
 * Every image becomes (channels, height, width) bytes: decoded, made grey or colour, scaled so that it covers the size,
 * cut in the middle, rounded. That is a function of the file and the shape alone, so the bits of a training do not
 * depend on which thread decodes what, nor on whether it was decoded before: decoded images are kept in a file of the
 * data cache (image_cache.h). Mean and deviation are measured as of other datasets of bytes (measure.h), by all cores
 * while that cache fills, and kept beside it (measured.h). Where bad files are to be left out, all are read when the
 * dataset is opened (bad_images.h): so every node leaves out the same.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/pin.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/images/image.h"
#include "data/measure.h"
#include "data/normalise.h"
#include "data/readers/bad_images.h"
#include "data/readers/image_cache.h"
#include "data/readers/image_list.h"
#include "data/readers/measured.h"

#define PIXELS_MAX ((uint64_t)1 << 27) /* of a file: 11,585 x 11,585 */
enum { THREADS_MAX = 64 };             /* that decode images to measure them */
enum { COLOURS_LOOKED = 16 };          /* images, evenly spread, that decide between grey and colours */
enum { SIDE_PLAIN = 512 };             /* larger images are scaled to a size that the user chooses */

/* Bump this when decoding, orientation or scaling give other bytes: caches of the older ones are replaced. */
enum { DECODING = 3 };

typedef struct folder {
	ls_image_list list;
	ls_image_shape shape;
	ls_image_cache *cache; /* NULL: none; of all images of the split */
	uint64_t *good;        /* (count) places in the list of images that can be read; NULL: all */
	uint64_t count;        /* of those */
	uint64_t samples;      /* that are used: all, or some evenly spread ones */
	int skips_bad;         /* images that cannot be read are left out when the dataset is opened */
	uint64_t key;          /* a hash of all that decides about the decoded bytes; 0: nothing is kept */
	char cache_file[4096]; /* what is known of the images is kept beside it; "": nothing is kept */
} folder;

static void folder_free(void *self)
{
	folder *f = self;
	ls_image_cache_close(f->cache);
	ls_image_list_release(&f->list);
	free(f->good);
	free(f);
}

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* Where sample `index` is in the list: the first N of a list in the order of classes would be of few classes. */
static uint64_t place_of(const folder *f, uint64_t index)
{
	uint64_t place = f->samples == f->count ? index : f->count * index / f->samples;
	return f->good ? f->good[place] : place;
}

static size_t values_of(const folder *f)
{
	return (size_t)f->shape.channels * (size_t)f->shape.height * (size_t)f->shape.width;
}

static ls_status scale(const folder *f, const ls_image *image, const char *path, uint8_t *bytes)
{
	size_t values = values_of(f);
	float *pixels = malloc(values * sizeof(*pixels));

	if (!pixels)
		return ls_fail(LS_EMEMORY, "%s: no memory to scale it", path);
	ls_status status = ls_image_resize(image, LS_RESIZE_COVER, f->shape, pixels, path);
	if (status == LS_OK)
		ls_pixels_round(pixels, values);
	for (size_t i = 0; status == LS_OK && i < values; i++)
		bytes[i] = (uint8_t)pixels[i];
	free(pixels);
	return status;
}

static ls_status decode(const folder *f, uint64_t place, uint8_t *bytes)
{
	char path[4096];
	ls_image image = { 0 };
	uint8_t *file = NULL;
	size_t size = 0;

	LS_TRY(ls_image_list_fetch(&f->list, place, &file, &size, path, sizeof(path)));
	ls_status status = ls_image_decode_for(&image, file, size, path, PIXELS_MAX, &f->shape);
	free(file);
	if (status == LS_OK)
		status = scale(f, &image, path, bytes);
	ls_image_release(&image);
	return status;
}

static ls_status read_place(const folder *f, uint64_t place, uint8_t *bytes)
{
	if (f->cache && ls_image_cache_get(f->cache, place, bytes))
		return LS_OK;
	LS_TRY(decode(f, place, bytes));
	if (f->cache)
		ls_image_cache_put(f->cache, place, bytes);
	return LS_OK;
}

static ls_status folder_read_label(void *self, uint64_t index, int32_t *label)
{
	const folder *f = self;
	*label = f->list.entry[place_of(f, index)].label;
	return LS_OK;
}

static int is_bad_image(ls_status status)
{
	return status == LS_EFORMAT || status == LS_EIO;
}

/* What to do about an image that cannot be read. */
static ls_status advise(const folder *f, ls_status status)
{
	if (!is_bad_image(status) || f->skips_bad)
		return status;
	return ls_fail(status, "%s; options.skip_bad N leaves out up to N images that cannot be read", ls_last_error());
}

static ls_status folder_read(void *self, uint64_t index, uint8_t *bytes, int32_t *label)
{
	const folder *f = self;
	uint64_t place = place_of(f, index);

	*label = f->list.entry[place].label;
	return advise(f, read_place(f, place, bytes));
}

/* ---- the shape --------------------------------------------------------------------------------------------------- */

/* The shape of an image; one that no decoder would take is as bad as one without a header. */
static ls_status peek(const folder *f, uint64_t place, ls_image_shape *out, char *path, size_t size)
{
	uint8_t *file = NULL;
	size_t bytes = 0;

	LS_TRY(ls_image_list_fetch(&f->list, place, &file, &bytes, path, size));
	ls_status status = ls_image_peek(out, file, bytes, path);
	free(file);
	LS_TRY(status);
	const ls_image image = { .height = out->height, .width = out->width };
	return ls_image_check(&image, path, PIXELS_MAX);
}

/* The first image that can be looked at; with skip_bad, others are tried next. */
static ls_status peek_first(const folder *f, uint64_t skip_bad, ls_image_shape *out, char *path, size_t size)
{
	ls_status status = LS_OK;

	for (uint64_t i = 0; i < f->list.count && (i == 0 || i <= skip_bad); i++) {
		status = peek(f, i, out, path, size);
		if (!is_bad_image(status))
			return status;
	}
	return advise(f, status);
}

/* Grey where none of some evenly spread images has colours. */
static ls_status find_channels(const folder *f, int *channels)
{
	uint64_t looked = f->list.count < COLOURS_LOOKED ? f->list.count : COLOURS_LOOKED;
	ls_image_shape other;
	char path[4096];

	for (uint64_t i = looked; i-- > 1;) {
		ls_status status = peek(f, f->list.count * i / looked, &other, path, sizeof(path));
		if (status != LS_OK && !(f->skips_bad && is_bad_image(status)))
			return advise(f, status);
		if (status == LS_OK && other.channels > *channels)
			*channels = other.channels;
	}
	return LS_OK;
}

/* A square of options.image_size; without it, the size of the first image. */
static ls_status find_shape(folder *f, const ls_dataset_options *o)
{
	ls_image_shape first;
	char path[4096];
	int64_t size = o->image_size;
	int channels = 0;

	if (size < 0 || size > LS_IMAGE_SIDE_MAX)
		return ls_fail(LS_EINVALID,
			       "options.image_size must be 1 to %d, or 0 for the size of the first image, not %lld",
			       LS_IMAGE_SIDE_MAX, (long long)size);
	LS_TRY(find_channels(f, &channels));
	LS_TRY(peek_first(f, o->skip_bad, &first, path, sizeof(path)));
	f->shape = (ls_image_shape){ .channels = first.channels > channels ? first.channels : channels,
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

/* ---- the cache --------------------------------------------------------------------------------------------------- */

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

/* Where what is known of images is kept: "<cache>/images", or what the user asks for. */
static ls_status cache_folder(const ls_dataset_options *o, char *out, size_t size)
{
	if (!o->cache || !strcmp(o->cache, "auto"))
		return ls_path_join(out, size, ls_data_cache(), "images");
	if ((size_t)snprintf(out, size, "%s", o->cache) >= size)
		return ls_fail(LS_EINVALID, "options.cache is longer than %zu characters", size - 1);
	return LS_OK;
}

static int is_off(const ls_dataset_options *o)
{
	return o->cache && !strcmp(o->cache, "off");
}

/* "<cache>/images/pets-28x28x1-train-0123456789abcdef.cache": a file for each folder, shape and split. */
static ls_status cache_path(const folder *f, const ls_dataset_options *o, const char *name, char *out, size_t size)
{
	char dir[4096], file[256], *real = realpath(f->list.root, NULL);

	if (!real)
		return ls_fail_errno(LS_EIO, "cannot find %s", f->list.root);
	uint64_t place = XXH64(real, strlen(real), 0);
	free(real);
	LS_TRY(cache_folder(o, dir, sizeof(dir)));
	LS_TRY(ls_path_make(dir));
	snprintf(file, sizeof(file), "%.63s-%dx%dx%d-%s-%016" PRIx64 ".cache", name, f->shape.width, f->shape.height,
		 f->shape.channels, o->split == LS_SPLIT_TRAIN ? "train" : "test", place);
	return ls_path_join(out, size, dir, file);
}

/* A cache that was asked for must be there; without one that is only convenient, images are decoded every time. */
static ls_status open_cache(folder *f, const ls_dataset_options *o, const char *name)
{
	ls_status status = cache_path(f, o, name, f->cache_file, sizeof(f->cache_file));
	const ls_image_cache_options cache = {
		.path = f->cache_file, .key = f->key, .images = f->list.count, .bytes = values_of(f)
	};

	if (status != LS_OK)
		f->cache_file[0] = '\0';
	if (status == LS_OK)
		status = ls_image_cache_open(&f->cache, &cache);
	if (status == LS_OK || status == LS_EMEMORY || (o->cache && strcmp(o->cache, "auto") != 0))
		return status;
	ls_log_warning("decoded images are not kept, every epoch decodes them again: %s", ls_last_error());
	return LS_OK;
}

/* ---- bad images -------------------------------------------------------------------------------------------------- */

static ls_status try_image(void *context, uint64_t place)
{
	const folder *f = context;
	uint8_t *bytes = malloc(values_of(f));
	ls_status status = bytes ? read_place(f, place, bytes) : ls_fail(LS_EMEMORY, "no memory for an image");

	free(bytes);
	return status;
}

/* Name the bad ones, and keep the places of the others. */
static ls_status leave_out(folder *f, const ls_bad_images *bad, uint64_t most)
{
	uint64_t kept = 0, next = 0;

	if (bad->count + f->list.bad > most)
		return ls_fail(LS_EFORMAT,
			       "%s: more than options.skip_bad %" PRIu64 " images cannot be read; one of them: %s",
			       f->list.root, most, bad->count > 0 ? bad->image[0].why : f->list.why[0]);
	if (bad->count == 0)
		return LS_OK;
	if (bad->count == f->list.count)
		return ls_fail(LS_EFORMAT, "%s: no image can be read; the first: %s", f->list.root, bad->image[0].why);
	f->good = malloc((f->list.count - bad->count) * sizeof(*f->good));
	if (!f->good)
		return ls_fail(LS_EMEMORY, "no memory for the places of %zu images", f->list.count);
	for (uint64_t place = 0; place < f->list.count; place++)
		if (next < bad->count && bad->image[next].place == place)
			ls_log_warning("left out: %s", bad->image[next++].why);
		else
			f->good[kept++] = place;
	f->count = kept;
	return LS_OK;
}

/* All images are tried, unless an earlier start did. */
static ls_status find_bad(folder *f, const ls_dataset_options *o)
{
	ls_bad_images bad = { .count = 0 };
	char file[sizeof(f->cache_file) + 16];
	int found = 0;

	snprintf(file, sizeof(file), "%s.bad", f->cache_file);
	ls_status status = f->cache ? ls_bad_images_load(&bad, file, f->key, f->list.count, &found) : LS_OK;
	if (status == LS_OK && !found) {
		status = ls_bad_images_find(&bad, f->list.count, o->skip_bad, try_image, f);
		if (status == LS_OK && f->cache && bad.count <= o->skip_bad && !bad.is_passing)
			ls_bad_images_save(&bad, file, f->key);
	}
	if (status == LS_OK)
		status = leave_out(f, &bad, o->skip_bad);
	ls_bad_images_release(&bad);
	return status;
}

/* ---- mean and deviation ------------------------------------------------------------------------------------------ */

/* Of the images that can be read, used in this training or not: as other readers of images measure. */
static ls_status read_to_measure(void *self, uint64_t index, uint8_t *bytes, int32_t *label)
{
	const folder *f = self;

	*label = 0;
	return advise(f, read_place(f, f->good ? f->good[index] : index, bytes));
}

/* Of the images that are measured. */
static uint64_t measured_key(const folder *f)
{
	return f->good ? XXH64(f->good, f->count * sizeof(*f->good), f->key) : f->key;
}

static ls_status measure_all(folder *f, ls_normalisation *out)
{
	int cores = ls_pin_cores();
	const ls_image_source source = { .channels = f->shape.channels,
					 .positions = (size_t)f->shape.height * (size_t)f->shape.width,
					 .samples = f->count,
					 .read_bytes = read_to_measure,
					 .self = f,
					 .threads = cores < THREADS_MAX ? cores : THREADS_MAX,
					 .slow = f->list.root };

	return ls_normalisation_measure_source(out, &source);
}

/* All nodes of a host would measure the same at the same time, each by all cores: one does. */
static ls_status measure(folder *f, ls_normalisation *out)
{
	char file[sizeof(f->cache_file) + 16];
	int found = 0;

	if (!f->cache_file[0])
		return measure_all(f, out);
	snprintf(file, sizeof(file), "%s.measured", f->cache_file);
	LS_TRY(ls_measured_load(out, file, measured_key(f), f->shape.channels, &found));
	if (found)
		return LS_OK;
	int lock = ls_measured_lock(file);
	ls_status status = ls_measured_load(out, file, measured_key(f), f->shape.channels, &found);
	if (status == LS_OK && !found)
		status = measure_all(f, out);
	if (status == LS_OK && !found)
		ls_measured_save(out, file, measured_key(f));
	if (lock >= 0)
		close(lock);
	return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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

/* With test/ and val/ somebody may expect that training looks at val/. */
static void note_unread(const folder *f)
{
	static const char *const names[] = { "val", "valid", "validation" };
	char path[4096];

	for (size_t i = 0; strcmp(f->list.below, "test") == 0 && i < LS_COUNT(names); i++)
		if (ls_path_join(path, sizeof(path), f->list.folder, names[i]) == LS_OK && ls_image_folder_is(path))
			ls_log_note("%s has test/ and %s/: tests are on test/, and %s/ is not read", f->list.folder,
				    names[i], names[i]);
}

static ls_status read_list(folder *f, const ls_dataset_options *o)
{
	char index[4096];
	ls_image_list_options list = { .path = o->name, .split = o->split, .skip_bad = o->skip_bad };

	if (!is_off(o)) {
		LS_TRY(cache_folder(o, index, sizeof(index)));
		list.index = index;
	}
	LS_TRY(ls_image_list_read(&f->list, &list));
	f->count = f->list.count;
	if (o->split == LS_SPLIT_TEST && f->list.is_split)
		ls_log_note(
			"%s has no test images of its own: one image in ten, by a hash of its name, is for tests (%zu)",
			o->name, f->list.count);
	if (o->split == LS_SPLIT_TEST && !f->list.is_split)
		note_unread(f);
	return LS_OK;
}

/* Test images have the shape of training images. */
static ls_status find_training_shape(folder *f, const ls_dataset_options *o)
{
	ls_dataset_options of_train = *o;
	folder train = { .skips_bad = f->skips_bad };

	of_train.split = LS_SPLIT_TRAIN;
	ls_status status = read_list(&train, &of_train);
	if (status == LS_OK)
		status = find_shape(&train, &of_train);
	if (status == LS_OK)
		f->shape = train.shape;
	ls_image_list_release(&train.list);
	return status;
}

/* And their normalisation. */
static ls_status follow_training(folder *f, const ls_dataset_options *o, ls_normalisation *n)
{
	ls_dataset_options of_train = *o;
	ls_dataset *train = NULL;

	if (o->normalisation) /* then only the shape is asked for, unless that is known, too */
		return o->height > 0 ? LS_OK : find_training_shape(f, o);
	of_train.split = LS_SPLIT_TRAIN;
	of_train.samples = 0;
	LS_TRY(ls_image_folder_open(&train, &of_train));
	const ls_dataset_info *info = ls_dataset_describe(train);
	f->shape = (ls_image_shape){ .channels = info->channels, .height = info->height, .width = info->width };
	ls_status status = ls_normalisation_copy(n, ls_dataset_normalisation(train));
	ls_dataset_free(train);
	return status;
}

/* The cache, and which images cannot be read. */
static ls_status prepare(folder *f, const ls_dataset_options *o)
{
	ls_dataset_info info;

	describe(f, o, &info);
	if (!is_off(o)) {
		LS_TRY(find_key(f, &f->key));
		LS_TRY(open_cache(f, o, info.name));
	}
	if (f->skips_bad)
		LS_TRY(find_bad(f, o));
	f->samples = o->samples > 0 && o->samples < f->count ? o->samples : f->count;
	return LS_OK;
}

static ls_status open_folder(folder *f, ls_dataset **out, const ls_dataset_options *o, ls_normalisation *n)
{
	ls_dataset_info info;

	if (o->channels < 0 || o->height < 0 || o->width < 0 || (o->height > 0 && (o->width == 0 || o->channels == 0)))
		return ls_fail(LS_EINVALID, "options.channels, height and width must be all positive or all 0");
	f->skips_bad = o->skip_bad > 0;
	if (o->split == LS_SPLIT_TEST)
		LS_TRY(follow_training(f, o, n));
	LS_TRY(read_list(f, o));
	if (o->height > 0)
		f->shape = (ls_image_shape){ .channels = o->channels, .height = o->height, .width = o->width };
	else if (o->split == LS_SPLIT_TRAIN)
		LS_TRY(find_shape(f, o));
	LS_TRY(prepare(f, o));
	if (n->channels == 0)
		LS_TRY(o->normalisation ? ls_normalisation_copy(n, o->normalisation) : measure(f, n));
	describe(f, o, &info);
	LS_TRY(ls_dataset_new_bytes(out, &info, n, folder_read, folder_free, f));
	(*out)->class_names = f->list.class_name;
	(*out)->bad = f->list.bad + f->list.count - f->count;
	(*out)->read_label = folder_read_label;
	(*out)->is_decoded = 1;
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
