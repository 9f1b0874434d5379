/*
 * Datasets of NumPy arrays: files and archives, stored and compressed, give what IDX files of the same bytes give; sets
 * without test images; floats; and arrays that do not fit together.
 */
#include <math.h>

#include "data/dataset.h"
#include "unit/data/npys.h"
#include "unit/fetch/zips.h"
#include "unit/test_main.h"

enum { COUNT = 30, SIDE = 4, VALUES = SIDE * SIDE };

static uint8_t pixels[COUNT * VALUES];
static uint8_t labels[COUNT];

static npy_file images_file(void)
{
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = fill_pixels(i);
	for (size_t i = 0; i < COUNT; i++)
		labels[i] = (uint8_t)(i % 3);
	return npy_array("|u1", "(30, 4, 4)", pixels, sizeof(pixels));
}

static void put_npy(const char *dir, const char *name, npy_file file)
{
	put_file(in_dir(dir, name), file.bytes, file.size);
	free(file.bytes);
}

static npy_file labels_file(void)
{
	int64_t wide[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		wide[i] = (int64_t)i % 3;
	return npy_array("<i8", "(30,)", wide, sizeof(wide));
}

/* An archive with these two arrays under these names, and the images under another one, if there is one. */
static void put_archive_twice(const char *path, const char *images, const char *again, const char *of_labels,
			      int deflated)
{
	static zip_builder zip;
	npy_file x = images_file(), y = labels_file();

	memset(&zip, 0, sizeof(zip));
	zip_add(&zip, images, x.bytes, x.size, deflated);
	zip_add(&zip, of_labels, y.bytes, y.size, deflated);
	if (again)
		zip_add(&zip, again, x.bytes, x.size, deflated);
	zip_finish(&zip, "");
	put_file(path, zip.data, zip.bytes);
	free(x.bytes);
	free(y.bytes);
}

static void put_archive(const char *path, const char *images, const char *of_labels, int deflated)
{
	put_archive_twice(path, images, NULL, of_labels, deflated);
}

static void expect_pixels(const char *path)
{
	ls_dataset *set = NULL;
	uint8_t bytes[VALUES];
	int32_t label;

	assert_ok(open_set(&set, path, NULL, LS_SPLIT_TRAIN, 0));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_true(info->samples == COUNT && info->classes == 3 && info->channels == 1 && info->height == SIDE);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_ok(ls_dataset_read_bytes(set, i, bytes, &label));
		assert_memory_equal(bytes, pixels + i * VALUES, VALUES);
		assert_int_equal(label, labels[i]);
	}
	assert_ok(ls_dataset_check(set));
	ls_dataset_free(set);
}

static void test_same_everywhere(void **state)
{
	const char *dir = *state;
	ls_dataset *arrays = NULL, *idx = NULL;

	put_npy(dir, "x_train.npy", images_file());
	put_npy(dir, "y_train.npy", labels_file());
	put_archive(in_dir(dir, "a.npz"), "x_train.npy", "y_train.npy", 0);
	put_archive(in_dir(dir, "b.npz"), "train_images.npy", "train_labels.npy", 1);
	expect_pixels(dir);
	expect_pixels(in_dir(dir, "a.npz"));
	expect_pixels(in_dir(dir, "b.npz"));
	assert_int_equal(mkdir(in_dir(dir, "idx"), 0700), 0);
	put_idx(in_dir(dir, "idx/train-images-idx3-ubyte"), 3, (uint32_t[]){ COUNT, SIDE, SIDE }, fill_pixels, 0);
	put_idx(in_dir(dir, "idx/train-labels-idx1-ubyte"), 1, (uint32_t[]){ COUNT }, fill_digits, 0);
	assert_ok(open_set(&arrays, dir, NULL, LS_SPLIT_TRAIN, 0));
	assert_ok(open_set(&idx, in_dir(dir, "idx"), NULL, LS_SPLIT_TRAIN, 0));
	assert_true(ls_dataset_normalisation(arrays)->mean[0] == ls_dataset_normalisation(idx)->mean[0]);
	assert_true(ls_dataset_normalisation(arrays)->deviation[0] == ls_dataset_normalisation(idx)->deviation[0]);
	for (uint64_t i = 0; i < COUNT; i++) {
		float a[VALUES], b[VALUES];
		int32_t label;
		assert_ok(ls_dataset_read(arrays, i, a, &label));
		assert_ok(ls_dataset_read(idx, i, b, &label));
		assert_memory_equal(a, b, sizeof(a));
	}
	ls_dataset_free(arrays);
	ls_dataset_free(idx);
	assert_fails(open_set(&arrays, dir, NULL, LS_SPLIT_TEST, 0), LS_ENOTFOUND, "has no array x_test");
}

/* images and labels alone: every image is in one of the two splits. */
static void test_single_set(void **state)
{
	const char *path = in_dir(*state, "set.npz");
	ls_dataset *set = NULL;
	uint64_t counts[2];

	put_archive(path, "images.npy", "labels.npy", 1);
	for (int split = 0; split < 2; split++) {
		assert_ok(open_set(&set, path, NULL, split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, 0));
		counts[split] = ls_dataset_describe(set)->samples;
		assert_int_equal(ls_dataset_describe(set)->classes, 3);
		ls_dataset_free(set);
	}
	assert_int_equal(counts[0] + counts[1], COUNT);
	assert_in_range(counts[1], 1, 10);
}

/* Of any range: the model sees them with mean 0 and deviation 1. */
static void test_floats(void **state)
{
	double values[COUNT * VALUES], sum = 0, squares = 0;
	ls_dataset *set = NULL;

	for (size_t i = 0; i < COUNT * VALUES; i++)
		values[i] = 1000 + (double)fill_pixels(i);
	put_npy(*state, "x_train.npy", npy_array("<f8", "(30, 4, 4)", values, sizeof(values)));
	put_npy(*state, "y_train.npy", labels_file());
	assert_ok(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0));
	for (uint64_t i = 0; i < COUNT; i++) {
		float image[VALUES];
		int32_t label;
		assert_ok(ls_dataset_read(set, i, image, &label));
		for (int k = 0; k < VALUES; k++) {
			sum += (double)image[k];
			squares += (double)image[k] * (double)image[k];
		}
	}
	double mean = sum / (COUNT * VALUES);
	assert_true(fabs(mean) < 0.02 && fabs(sqrt(squares / (COUNT * VALUES) - mean * mean) - 1) < 0.01);
	uint8_t bytes[VALUES];
	int32_t label;
	assert_fails(ls_dataset_read_bytes(set, 0, bytes, &label), LS_EUNSUPPORTED, "not made of bytes");
	ls_dataset_free(set);
	values[77] = NAN;
	put_npy(*state, "x_train.npy", npy_array("<f8", "(30, 4, 4)", values, sizeof(values)));
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT, "a value of image 4 is NaN");
}

static void test_mistakes(void **state)
{
	int16_t large[COUNT * VALUES] = { [100] = 300 };
	ls_dataset *set = NULL;

	put_npy(*state, "x_train.npy", npy_array("<i2", "(30, 4, 4)", large, sizeof(large)));
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "there are images but no labels");
	put_npy(*state, "y_train.npy", labels_file());
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT, "image 6 has the value 300");
	put_npy(*state, "x_train.npy", npy_array("|u1", "(15, 2, 4, 4)", pixels, sizeof(pixels)));
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_EMISMATCH, "has 15 images, but");
	put_npy(*state, "x_train.npy", images_file());
	put_npy(*state, "x_test.npy", npy_array("|u1", "(30, 2, 8)", pixels, sizeof(pixels)));
	put_npy(*state, "y_test.npy", labels_file());
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TEST, 0), LS_EMISMATCH, "another size or type");
	labels[5] = 9;
	put_npy(*state, "x_test.npy", images_file());
	labels[5] = 9;
	put_npy(*state, "y_test.npy", npy_array("|u1", "(30,)", labels, sizeof(labels)));
	assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TEST, 0), LS_EFORMAT, "label 9 at index 5, expected 0..2");
	put_file(in_dir(*state, "bad.npz"), "PK\3\4", 4);
	assert_fails(open_set(&set, in_dir(*state, "bad.npz"), NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
		     "not a ZIP archive");
	put_archive(in_dir(*state, "c.npz"), "arr_0.npy", "arr_1.npy", 0);
	assert_fails(open_set(&set, in_dir(*state, "c.npz"), NULL, LS_SPLIT_TRAIN, 0), LS_ENOTFOUND,
		     "has no array x_train: expected x_train, y_train");
	put_archive_twice(in_dir(*state, "d.npz"), "x_train.npy", "x_train.npy", "y_train.npy", 1);
	assert_fails(open_set(&set, in_dir(*state, "d.npz"), NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
		     "d.npz: member 'x_train.npy' is there twice");
	put_archive_twice(in_dir(*state, "d.npz"), "x_train.npy", "y_train", "y_train.npy", 0);
	assert_fails(open_set(&set, in_dir(*state, "d.npz"), NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT,
		     "d.npz: member 'y_train' is there twice");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, test_same_everywhere, test_single_set, test_floats, test_mistakes)
