/*
 * Folders of images: mean and deviation, of all training images, kept beside the cache.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/measure.h"
#include "data/normalise.h"
#include "data/readers/measured.h"
#include "unit/data/image_folder_files.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

/* Every training image, above 1,024 of them, as if they were IDX files; also where fewer are used. */
static void test_measures_all(void **state)
{
	enum { PER_CLASS = 420 };
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	uint8_t *pixels = malloc((size_t)3 * PER_CLASS * SIDE * SIDE);
	ls_normalisation wanted = { 0 };
	char train[1200];

	snprintf(train, sizeof(train), "%s/train", (char *)*state);
	put_classes(train, PER_CLASS);
	put_image(*state, "test/cat/0.png", SIDE, 1);
	for (int i = 0; i < 3 * PER_CLASS; i++)
		memset(pixels + (size_t)i * SIDE * SIDE, (uint8_t)(40 * (i / PER_CLASS) + i % PER_CLASS), SIDE * SIDE);
	assert_ok(ls_normalisation_measure(&wanted, pixels, 3 * PER_CLASS, 1, SIDE * SIDE));
	o.name = *state;
	o.cache = "off";
	for (int round = 0; round < 3; round++) { /* all, some, test images */
		ls_dataset *set = NULL;
		o.samples = round == 1 ? 30 : 0;
		o.split = round == 2 ? LS_SPLIT_TEST : LS_SPLIT_TRAIN;
		assert_ok(ls_dataset_open(&set, &o));
		assert_true(ls_normalisation_equal(ls_dataset_normalisation(set), &wanted));
		ls_dataset_free(set);
	}
	ls_normalisation_release(&wanted);
	free(pixels);
}

/* Mean and deviation are kept beside the cache, and do not need it; what is kept is of these images alone. */
static void test_measured_once(void **state)
{
	char train[1200], cache[1200], kept[1400], decoded[1400], image[1400];
	ls_dataset *set = NULL;
	glob_t found = { 0 };
	size_t bytes;

	snprintf(train, sizeof(train), "%s/set", (char *)*state);
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	snprintf(kept, sizeof(kept), "%s/*.measured", cache);
	snprintf(decoded, sizeof(decoded), "%s/*.cache", cache);
	snprintf(image, sizeof(image), "%s/dog/3.png", train);
	put_classes(train, 20);
	ls_dataset_free(opened(train, LS_SPLIT_TRAIN, cache));
	assert_int_equal(count_matches(kept), 1);
	spoil(image);
	remove_matches(decoded);
	ls_dataset_free(opened(train, LS_SPLIT_TRAIN, cache));
	assert_fails(open_set(&set, train, LS_SPLIT_TRAIN, "off"), LS_EFORMAT, "dog/3.png");
	assert_int_equal(glob(kept, 0, NULL, &found), 0);
	uint8_t *whole = take_file(found.gl_pathv[0], &bytes);
	for (size_t at = 0; at < bytes; at++) { /* damaged, it is no use */
		whole[at] ^= 1;
		put_file(found.gl_pathv[0], whole, bytes);
		whole[at] ^= 1;
		assert_fails(open_set(&set, train, LS_SPLIT_TRAIN, cache), LS_EFORMAT, "dog/3.png");
	}
	put_file(found.gl_pathv[0], whole, bytes);
	ls_dataset_free(opened(train, LS_SPLIT_TRAIN, cache));
	free(whole);
	globfree(&found);
	put_image(train, "cat/more.png", SIDE, 9); /* another folder now */
	put_image(train, "cat/less.png", SIDE, 8);
	put_image(train, "cat/least.png", SIDE, 7);
	assert_fails(open_set(&set, train, LS_SPLIT_TRAIN, cache), LS_EFORMAT, "dog/3.png");
}

/* Nodes of one host start together: one measures, and the others wait for what it keeps. */
static void test_measured_by_one(void **state)
{
	char train[1200], cache[1200], pattern[1400], image[1400], aside[1400];
	glob_t found = { 0 };
	int status;

	snprintf(train, sizeof(train), "%s/set", (char *)*state);
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	snprintf(pattern, sizeof(pattern), "%s/*.measured", cache);
	snprintf(image, sizeof(image), "%s/dog/3.png", train);
	snprintf(aside, sizeof(aside), "%s/aside", (char *)*state);
	put_classes(train, 20);
	ls_dataset_free(opened(train, LS_SPLIT_TRAIN, cache));
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(rename(found.gl_pathv[0], aside), 0);
	snprintf(pattern, sizeof(pattern), "%s/*.cache", cache);
	remove_matches(pattern);
	spoil(image); /* so who measures fails */
	int lock = ls_measured_lock(found.gl_pathv[0]);
	assert_true(lock >= 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		ls_dataset *set = NULL;
		close(lock); /* it is held by this process as well, else */
		_exit(open_set(&set, train, LS_SPLIT_TRAIN, cache) == LS_OK ? 0 : 1);
	}
	usleep(300000);
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	assert_int_equal(rename(aside, found.gl_pathv[0]), 0);
	close(lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	globfree(&found);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_measures_all, test_measured_once, test_measured_by_one)
