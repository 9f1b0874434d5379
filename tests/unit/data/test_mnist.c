/*
 * Datasets from IDX files, and how names are understood.
 */
#include "unit/data/fixture.h"

#include "data/dataset.h"
#include "data/loader.h"
#include "unit/test_main.h"

static uint8_t fill_four(size_t i)
{
	return (uint8_t)(i % 4);
}
static uint8_t fill_seven(size_t i)
{
	return i == 5 ? 7 : 0;
}
static uint8_t fill_twelve(size_t i)
{
	return i == 5 ? 12 : 0;
}

static void reads_and_normalises(void **state)
{
	ls_dataset *set;
	float image[784];
	int32_t label;
	put_mnist(*state, 30, 7);
	assert_ok(open_set(&set, "mnist", *state, LS_SPLIT_TRAIN, 0));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_string_equal(info->name, "mnist");
	assert_int_equal(info->samples, 30);
	assert_int_equal(info->channels, 1);
	assert_int_equal(info->height, 28);
	assert_int_equal(info->width, 28);
	assert_int_equal(info->classes, 10);
	for (uint64_t i = 0; i < 30; i++) {
		assert_ok(ls_dataset_read(set, i, image, &label));
		assert_int_equal(label, i % 10);
		for (size_t k = 0; k < 784; k++) {
			float expected = ((float)fill_pixels(i * 784 + k) / 255.0f - 0.1307f) / 0.3081f;
			assert_memory_equal(&image[k], &expected, sizeof(float));
		}
	}
	assert_fails(ls_dataset_read(set, 30, image, &label), LS_EINVALID, "has 30 samples; sample 30 does not exist");
	ls_dataset_free(set);
	assert_ok(open_set(&set, "mnist", *state, LS_SPLIT_TEST, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 7);
	ls_dataset_free(set);
}

static void samples_cap(void **state)
{
	ls_dataset *set;
	put_mnist(*state, 30, 7);
	assert_ok(open_set(&set, "mnist", *state, LS_SPLIT_TRAIN, 12));
	assert_int_equal(ls_dataset_describe(set)->samples, 12);
	ls_dataset_free(set);
	assert_ok(open_set(&set, "mnist", *state, LS_SPLIT_TRAIN, 31));
	assert_int_equal(ls_dataset_describe(set)->samples, 30);
	ls_dataset_free(set);
}

static void other_spellings(void **state)
{
	const char *dir = *state;
	const uint32_t images[] = { 9, 28, 28 }, labels[] = { 9 };
	static const char *const names[][2] = { { "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz" },
						{ "train-images.idx3-ubyte", "train-labels.idx1-ubyte" },
						{ "train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte" } };
	for (size_t i = 0; i < 3; i++) {
		ls_dataset *set;
		put_idx(in_dir(dir, names[i][0]), 3, images, fill_pixels, strstr(names[i][0], ".gz") != NULL);
		put_idx(in_dir(dir, names[i][1]), 1, labels, fill_digits, strstr(names[i][1], ".gz") != NULL);
		assert_ok(open_set(&set, "mnist", dir, LS_SPLIT_TRAIN, 0));
		assert_int_equal(ls_dataset_describe(set)->samples, 9);
		ls_dataset_free(set);
		unlink(in_dir(dir, names[i][0]));
		unlink(in_dir(dir, names[i][1]));
	}
}

static void a_directory_of_any_shape(void **state)
{
	const char *dir = *state;
	ls_dataset *set;
	put_idx(in_dir(dir, "train-images-idx4-ubyte"), 4, (uint32_t[]){ 8, 3, 5, 7 }, fill_pixels, 0);
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ 8 }, fill_four, 0);
	put_idx(in_dir(dir, "t10k-images-idx4-ubyte"), 4, (uint32_t[]){ 2, 3, 5, 7 }, fill_pixels, 0);
	put_idx(in_dir(dir, "t10k-labels-idx1-ubyte"), 1, (uint32_t[]){ 2 }, fill_four, 0);
	assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_int_equal(info->channels, 3);
	assert_int_equal(info->height, 5);
	assert_int_equal(info->width, 7);
	assert_int_equal(info->classes, 4);
	uint8_t image[105];
	int32_t label;
	assert_ok(ls_dataset_read_bytes(set, 6, image, &label));
	assert_int_equal(label, 2);
	for (size_t k = 0; k < 105; k++)
		assert_int_equal(image[k], fill_pixels(6 * 105 + k));
	ls_dataset_free(set);

	/* the test set has labels 0 and 1 only, and yet four classes */
	assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TEST, 0));
	assert_int_equal(ls_dataset_describe(set)->classes, 4);
	ls_dataset_free(set);
	put_idx(in_dir(dir, "t10k-labels-idx1-ubyte"), 1, (uint32_t[]){ 6 }, fill_seven, 0);
	put_idx(in_dir(dir, "t10k-images-idx4-ubyte"), 4, (uint32_t[]){ 6, 3, 5, 7 }, fill_pixels, 0);
	assert_fails(open_set(&set, dir, NULL, LS_SPLIT_TEST, 0), LS_EFORMAT, "label 7 at index 5, expected 0..3");
}

/* A label file of elements of 2 or 4 bytes; label i is 300 * i, but for the last. */
static void put_labels(const char *path, int width, uint32_t count, int32_t last, int gz)
{
	size_t bytes = 8 + (size_t)count * (size_t)width, packed_bytes;
	uint8_t *file = calloc(bytes, 1), *at = file + 8;
	memcpy(file, (uint8_t[]){ 0, 0, width == 2 ? 0x0b : 0x0c, 1, 0, 0, 0, (uint8_t)count }, 8);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t label = i + 1 == count ? (uint32_t)last : 300 * i;
		for (int b = width - 1; b >= 0; b--)
			*at++ = (uint8_t)(label >> (8 * b));
	}
	uint8_t *packed = gzip_bytes(file, bytes, &packed_bytes);
	put_file(path, gz ? packed : file, gz ? packed_bytes : bytes);
	free(packed);
	free(file);
}

static void more_classes_than_bytes(void **state)
{
	const char *dir = *state;
	const uint32_t dims[] = { 5, 8, 8 };
	static const char *const names[] = { "train-labels-idx1-short", "train-labels.idx1-short",
					     "train-labels-idx1-int", "train-labels.idx1-int.gz",
					     "train-labels-idx1-ubyte" };
	ls_dataset *set;
	put_idx(in_dir(dir, "train-images-idx3-ubyte"), 3, dims, fill_pixels, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) { /* the header decides, not the name */
		const char *path = in_dir(dir, names[i]);
		int width = strstr(names[i], "int") ? 4 : 2;
		uint8_t image[64];
		int32_t label;
		put_labels(path, width, 5, 1000, strstr(names[i], ".gz") != NULL);
		assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0));
		assert_int_equal(ls_dataset_describe(set)->classes, 1001);
		for (uint64_t k = 0; k < 5; k++) {
			assert_ok(ls_dataset_read_bytes(set, k, image, &label));
			assert_int_equal(label, k < 4 ? 300 * k : 1000);
		}
		ls_dataset_free(set);
		put_labels(path, width, 5, -2, strstr(names[i], ".gz") != NULL);
		assert_fails(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
			     "label -2 at index 4, expected 0..");
		unlink(path);
	}
	put_labels(in_dir(dir, "train-labels-idx1-int"), 4, 5, 1 << 20, 0);
	assert_fails(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
		     "label 1048576 at index 4, expected 0..1048575: there are at most 1048576 classes");
	put_labels(in_dir(dir, "train-labels-idx1-int"), 4, 5, 7, 0);
	ls_dataset_options options = { .size = sizeof(ls_dataset_options), .name = dir, .classes = 901 };
	assert_ok(ls_dataset_open(&set, &options));
	assert_int_equal(ls_dataset_describe(set)->classes, 901);
	ls_dataset_free(set);
	options.classes = 900;
	assert_fails(ls_dataset_open(&set, &options), LS_EFORMAT, "label 900 at index 3, expected 0..899");
}

static void channels_come_first(void **state)
{
	const char *dir = *state, *images = in_dir(dir, "train-images-idx4-ubyte");
	static const uint32_t last[][4] = { { 2, 28, 30, 1 }, { 2, 28, 30, 3 }, { 2, 5, 5, 4 } };
	static const uint32_t first[][4] = { { 2, 3, 28, 28 }, { 2, 3, 28, 3 }, { 2, 16, 3, 3 }, { 2, 5, 5, 5 } };
	ls_dataset *set;
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ 2 }, fill_digits, 0);
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		put_idx(images, 4, last[i], fill_pixels, 0);
		assert_fails(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
			     "look like (n, h, w, c), with the channels last; the order must be (n, c, h, w)");
	}
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		put_idx(images, 4, first[i], fill_pixels, 0);
		assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0));
		assert_int_equal(ls_dataset_describe(set)->channels, first[i][1]);
		ls_dataset_free(set);
	}
}

static void what_is_wrong_is_named(void **state)
{
	const char *dir = *state;
	ls_dataset *set;
	put_mnist(dir, 20, 5);
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ 20 }, fill_twelve, 0);
	assert_fails(open_set(&set, "mnist", dir, LS_SPLIT_TRAIN, 0), LS_EFORMAT, "label 12 at index 5, expected 0..9");
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ 19 }, fill_digits, 0);
	assert_fails(open_set(&set, "mnist", dir, LS_SPLIT_TRAIN, 0), LS_EMISMATCH, "holds 20 images but");
	assert_non_null(strstr(ls_last_error(), "holds 19 labels"));
	put_idx(in_dir(dir, "train-images-idx3-ubyte"), 1, (uint32_t[]){ 19 }, fill_digits, 0);
	assert_fails(open_set(&set, "mnist", dir, LS_SPLIT_TRAIN, 0), LS_EFORMAT, "is a label file");
	put_idx(in_dir(dir, "t10k-labels-idx1-ubyte"), 3, (uint32_t[]){ 5, 1, 1 }, fill_digits, 0);
	assert_fails(open_set(&set, "mnist", dir, LS_SPLIT_TEST, 0), LS_EFORMAT, "is an image file");
	put_idx(in_dir(dir, "train-images-idx3-ubyte"), 3, (uint32_t[]){ 19, 32, 32 }, fill_pixels, 0);
	assert_fails(open_set(&set, "mnist", dir, LS_SPLIT_TRAIN, 0), LS_EMISMATCH, "images of 1 x 32 x 32");
}

/* By its header: nothing is inflated, however much it declares. (This one would end early.) */
static void a_gzip_of_too_many_images_is_not_inflated(void **state)
{
	const char *dir = *state;
	ls_dataset *set;
	size_t bytes, packed_bytes;
	put_mnist(dir, 64, 5);
	uint8_t *plain = idx_bytes(3, (uint32_t[]){ 64, 28, 28 }, fill_pixels, &bytes);
	ls_idx_encode(plain, 3, (uint32_t[]){ 60000, 28, 28 });
	uint8_t *packed = gzip_bytes(plain, bytes, &packed_bytes);
	put_file(in_dir(dir, "train-images-idx3-ubyte.gz"), packed, packed_bytes);
	assert_int_equal(unlink(in_dir(dir, "train-images-idx3-ubyte")), 0);
	assert_fails(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0), LS_EMISMATCH, "holds 60000 images but");
	free(packed);
	free(plain);
}

/* A file that is cut short while it is in use: every sample is either what it was or an error that names the file. */
static void a_file_cut_short_is_named(void **state)
{
	const char *dir = *state;
	char path[4096];
	assert_ok(ls_path_join(path, sizeof(path), dir, "train-images-idx3-ubyte"));
	enum { SAMPLES = 9000, KEPT = 4000, VALUES = 28 * 28 };
	ls_dataset *set;
	float image[VALUES];
	int32_t label;
	put_mnist(dir, SAMPLES, 5);
	assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0));
	assert_ok(ls_dataset_check(set));
	assert_int_equal(truncate(path, 16 + (off_t)KEPT * VALUES), 0);
	assert_ok(ls_dataset_read(set, 0, image, &label));
	assert_fails(ls_dataset_check(set), LS_EIO, "train-images-idx3-ubyte was cut short");
	int failed = 0;
	for (uint64_t i = 0; i < SAMPLES; i++) {
		ls_status status = ls_dataset_read(set, i, image, &label);
		failed += status != LS_OK;
		if (i >= KEPT + 10)
			assert_int_equal(status, LS_EIO);
	}
	assert_in_range(failed, SAMPLES - KEPT - 10, SAMPLES - KEPT + 10);
	assert_non_null(strstr(ls_last_error(), "train-images-idx3-ubyte"));
	ls_dataset_free(set);

	/* and none of them reaches a trainer, not even where a cut raises no signal */
	put_mnist(dir, SAMPLES, 5);
	assert_ok(open_set(&set, dir, NULL, LS_SPLIT_TRAIN, 0));
	ls_loader *loader;
	ls_loader_options options = { .seed = 1, .microbatch = 16, .global_batch = 16 };
	const ls_microbatch *microbatch = NULL;
	assert_ok(ls_loader_new(&loader, set, &options));
	assert_ok(ls_loader_next(loader, &microbatch));
	assert_int_equal(truncate(path, 16 + (off_t)SAMPLES * VALUES - 1), 0);
	ls_status status = LS_OK;
	int microbatches = 1;
	for (; status == LS_OK && microbatches < 100; microbatches++)
		status = ls_loader_next(loader, &microbatch);
	assert_int_equal(status, LS_EIO);
	assert_true(microbatches < 20); /* those that were read ahead */
	assert_non_null(strstr(ls_last_error(), "was cut short while it was in use"));
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void missing_files_say_what_to_do(void **state)
{
	ls_dataset *set;
	setenv("LOCKSTEP_DATA", *state, 1);
	assert_fails(open_set(&set, "mnist", NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "`lockstep data get mnist`");
	assert_non_null(strstr(ls_last_error(), "`options.data glyphs`"));
	assert_non_null(strstr(ls_last_error(), *state));
	assert_fails(open_set(&set, "bigmnist", NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "`lockstep data get mnist`");
	mkdir(in_dir(*state, "mnist"), 0777);
	put_mnist(in_dir(*state, "mnist"), 3, 3);
	assert_ok(open_set(&set, "mnist", NULL, LS_SPLIT_TRAIN, 0));
	ls_dataset_free(set);
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "no train-images-idx3-ubyte");
	unsetenv("LOCKSTEP_DATA");
}

static void names_are_resolved(void **state)
{
	ls_dataset *set;
	assert_fails(open_set(&set, "glyhps", NULL, LS_SPLIT_TRAIN, 0), LS_EINVALID, "did you mean 'glyphs'?");
	assert_fails(open_set(&set, "./nowhere", NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "does not exist");
	assert_fails(open_set(&set, "", NULL, LS_SPLIT_TRAIN, 0), LS_EINVALID, "no dataset named");
	put_file(in_dir(*state, "x"), "\0\0\10\3", 4);
	assert_fails(open_set(&set, in_dir(*state, "x"), NULL, LS_SPLIT_TRAIN, 0), LS_EINVALID, "is a file");
	assert_string_equal(ls_dataset_row_at(0)->name, "mnist");
	assert_string_equal(ls_dataset_row_at(6)->name, "sotu");
	assert_string_equal(ls_dataset_row_at(7)->name, "fashion-mnist");
	assert_string_equal(ls_dataset_row_at(9)->name, "cifar100");
	assert_null(ls_dataset_row_at(10));
	assert_ptr_equal(ls_dataset_row_of("sotu"), ls_dataset_row_at(6));
	assert_null(ls_dataset_row_of("./sotu"));
	mkdir(in_dir(*state, "empty"), 0777);
	assert_fails(open_set(&set, in_dir(*state, "empty"), NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND,
		     "no train-images-idx3-ubyte");
	assert_fails(open_set(&set, in_dir(*state, "empty"), NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND,
		     "and no .txt files");
}

static void cache_place(void **state)
{
	(void)state;
	setenv("LOCKSTEP_DATA", "/a/b", 1);
	setenv("XDG_CACHE_HOME", "/x", 1);
	assert_string_equal(ls_data_cache(), "/a/b");
	unsetenv("LOCKSTEP_DATA");
	assert_string_equal(ls_data_cache(), "/x/lockstep");
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "/h", 1);
	assert_string_equal(ls_data_cache(), "/h/.cache/lockstep");
}

/* A user's own dataset. */
static ls_status own_read(void *self, uint64_t index, float *image, int32_t *label)
{
	image[0] = (float)index;
	*label = index == 3 ? *(int *)self : 0;
	return LS_OK;
}

static void own_datasets_are_checked(void **state)
{
	(void)state;
	int label_of_three = 1;
	ls_dataset *set;
	float image;
	int32_t label = 77;
	ls_dataset_info info = { .name = "own", .samples = 5, .channels = 1, .height = 1, .width = 1, .classes = 2 };
	const ls_dataset_ops ops = { .read = own_read }, nothing = { 0 };
	assert_ok(ls_dataset_new(&set, &info, &ops, &label_of_three));
	assert_ok(ls_dataset_read(set, 3, &image, &label));
	assert_int_equal(label, 1);
	label_of_three = 2;
	assert_fails(ls_dataset_read(set, 3, &image, &label), LS_EFORMAT, "sample 3 has label 2, expected 0..1");
	assert_fails(ls_dataset_read_bytes(set, 3, (uint8_t *)&image, &label), LS_EUNSUPPORTED, "not made of bytes");
	ls_dataset_free(set);
	ls_dataset_free(NULL);
	assert_fails(ls_dataset_new(&set, &info, &nothing, NULL), LS_EINVALID, "read function");
	info.samples = 0;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "at least one");
	info.samples = UINT64_MAX;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "can be counted");
	info.samples = 1, info.width = 0;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "each must be positive");
	info.width = 1 << 20, info.height = 1 << 20;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "at most 1048576 per dimension");
	info.height = 1;
	info.width = 1, info.classes = 0;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "0 classes");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, reads_and_normalises, samples_cap, other_spellings,
	       a_directory_of_any_shape, more_classes_than_bytes, channels_come_first, what_is_wrong_is_named,
	       a_gzip_of_too_many_images_is_not_inflated, a_file_cut_short_is_named, missing_files_say_what_to_do,
	       names_are_resolved, cache_place, own_datasets_are_checked)
