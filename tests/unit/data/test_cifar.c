/*
 * CIFAR's binary files: records, labels, order of files, and files that are wrong; and how they are installed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "data/readers/cifar.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { VALUES = 3072 };

/* `count` records; record i has the label (first + i) % classes and pixels of first + i, blue ones one more. */
static void put_records(const char *dir, const char *name, const ls_cifar *kind, int count, int first)
{
	size_t record = ls_cifar_record(kind);
	uint8_t *bytes = calloc((size_t)count, record);
	char path[2048];

	for (int i = 0; i < count; i++) {
		uint8_t *at = bytes + (size_t)i * record;
		memset(at, 99, (size_t)kind->labels);
		at[kind->labels - 1] = (uint8_t)((first + i) % kind->classes);
		memset(at + kind->labels, first + i, VALUES);
		memset(at + kind->labels + 2048, first + i + 1, 1024);
	}
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_ok(ls_file_put(path, bytes, (size_t)count * record));
	free(bytes);
}

static ls_status open_set(ls_dataset **out, const char *name, const char *dir, ls_split split)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = name;
	o.dir = dir;
	o.split = split;
	return ls_dataset_open(out, &o);
}

static void expect_record(const ls_dataset *set, uint64_t index, int value, int classes)
{
	uint8_t image[VALUES];
	int32_t label;

	assert_ok(ls_dataset_read_bytes(set, index, image, &label));
	assert_int_equal(label, value % classes);
	assert_int_equal(image[0], value);
	assert_int_equal(image[2047], value);
	assert_int_equal(image[VALUES - 1], value + 1);
}

static void test_files_follow_each_other(void **state)
{
	ls_dataset *set = NULL;

	for (int i = 0; i < 5; i++)
		put_records(*state, ls_cifar10.train[i], &ls_cifar10, 3 + i, 10 * i);
	put_records(*state, "test_batch.bin", &ls_cifar10, 2, 70);
	assert_ok(open_set(&set, "cifar10", *state, LS_SPLIT_TRAIN));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_true(info->samples == 25 && info->classes == 10 && info->channels == 3 && info->height == 32);
	assert_true(ls_dataset_normalisation(set)->mean[2] == 0.4465);
	expect_record(set, 0, 0, 10);
	expect_record(set, 2, 2, 10);
	expect_record(set, 3, 10, 10);
	expect_record(set, 24, 46, 10);
	ls_dataset_free(set);
	assert_ok(open_set(&set, "cifar10", *state, LS_SPLIT_TEST));
	assert_int_equal(ls_dataset_describe(set)->samples, 2);
	expect_record(set, 1, 71, 10);
	ls_dataset_free(set);
	assert_string_equal(ls_dataset_row_of("cifar10")->class_names[9], "truck");
}

/* In the folder of the archive; the second label counts. */
static void test_fine_labels(void **state)
{
	char inner[1200];
	ls_dataset *set = NULL;
	int names = 0;

	snprintf(inner, sizeof(inner), "%s/cifar-100-binary", (char *)*state);
	assert_int_equal(mkdir(inner, 0700), 0);
	put_records(inner, "train.bin", &ls_cifar100, 120, 0);
	assert_ok(open_set(&set, "cifar100", *state, LS_SPLIT_TRAIN));
	assert_int_equal(ls_dataset_describe(set)->classes, 100);
	expect_record(set, 99, 99, 100);
	expect_record(set, 119, 119, 100);
	ls_dataset_free(set);
	while (ls_dataset_row_of("cifar100")->class_names[names])
		names++;
	assert_int_equal(names, 100);
}

static void test_mistakes(void **state)
{
	ls_dataset *set = NULL;
	char path[1200];

	assert_fails(open_set(&set, "cifar10", *state, LS_SPLIT_TRAIN), LS_ENOTFOUND,
		     "run `lockstep data get cifar10`");
	snprintf(path, sizeof(path), "%s/test_batch.bin", (char *)*state);
	assert_ok(ls_file_put(path, path, 100));
	assert_fails(open_set(&set, "cifar10", *state, LS_SPLIT_TEST), LS_EFORMAT,
		     "has 100 bytes, which is not a multiple");
	put_records(*state, "test_batch.bin", &ls_cifar100, 3073, 0); /* a multiple of both */
	assert_fails(open_set(&set, "cifar10", *state, LS_SPLIT_TEST), LS_EFORMAT,
		     "record 0 has label 99, expected 0 to 9");
	assert_null(set);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_files_follow_each_other, test_fine_labels, test_mistakes)
