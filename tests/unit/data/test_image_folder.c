/*
 * Folders of images: classes, splits, sizes, the cache of decoded images, and folders that are wrong.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/log.h"
#include "data/dataset.h"
#include "data/measure.h"
#include "data/normalise.h"
#include "data/readers/image_cache.h"
#include "data/readers/image_list.h"
#include "support/png_writer.h"
#include "unit/data/image_folder_files.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

/* ---- making folders ---------------------------------------------------------------------------------------------- */

/* Declare another size in the header of a PNG file. */
static void png_resize(uint8_t *png, uint32_t width, uint32_t height)
{
	uint32_t sides[] = { width, height };
	for (int i = 0; i < 8; i++)
		png[16 + i] = (uint8_t)(sides[i / 4] >> (24 - 8 * (i % 4)));
	uint32_t sum = (uint32_t)crc32(0, png + 12, 17);
	for (int i = 0; i < 4; i++)
		png[29 + i] = (uint8_t)(sum >> (24 - 8 * i));
}

static void expect_failure(const char *root, ls_split split, ls_status status, const char *part)
{
	ls_dataset *set = NULL;
	assert_fails(open_set(&set, root, split, "off"), status, part);
	assert_null(set);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

static void test_train_and_test_folders(void **state)
{
	char train[1200], test[1200];
	uint8_t bytes[SIDE * SIDE];
	int32_t label;

	snprintf(train, sizeof(train), "%s/train", (char *)*state);
	snprintf(test, sizeof(test), "%s/val", (char *)*state);
	put_classes(train, 4);
	put_image(test, "eel/far/below.PNG", SIDE, 200);
	put_image(test, "cat/.hidden.png", SIDE, 1);
	put_image(test, "cat/b.png", 2 * SIDE, 90);
	ls_dataset *set = opened(*state, LS_SPLIT_TRAIN, "off");
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_int_equal(info->samples, 12);
	assert_int_equal(info->classes, 3);
	assert_true(info->channels == 1 && info->height == SIDE && info->width == SIDE);
	for (uint64_t i = 0; i < 12; i++) {
		assert_ok(ls_dataset_read_bytes(set, i, bytes, &label));
		assert_int_equal(label, i / 4);
		assert_int_equal(bytes[SIDE], 40 * (i / 4) + i % 4);
	}
	double mean = ls_dataset_normalisation(set)->mean[0];
	assert_true(mean > 41.4 / 255 && mean < 41.6 / 255);
	ls_dataset_free(set);
	set = opened(*state, LS_SPLIT_TEST, "off");
	assert_int_equal(ls_dataset_describe(set)->samples, 2);
	assert_true(ls_dataset_normalisation(set)->mean[0] == mean);
	assert_ok(ls_dataset_read_bytes(set, 0, bytes, &label)); /* scaled */
	assert_true(label == 0 && bytes[0] == 90);
	assert_ok(ls_dataset_read_bytes(set, 1, bytes, &label));
	assert_true(label == 2 && bytes[SIDE * SIDE - 1] == 200);
	ls_dataset_free(set);
}

/* Every image is in one of the two, and always in the same one. */
static void test_split_by_name(void **state)
{
	uint8_t bytes[SIDE * SIDE];
	int seen[3][40] = { { 0 } };
	int32_t label;

	put_classes(*state, 40);
	uint64_t counts[2];
	for (int split = 0; split < 2; split++) {
		ls_dataset *set = opened(*state, split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, "off");
		counts[split] = ls_dataset_describe(set)->samples;
		for (uint64_t i = 0; i < counts[split]; i++) {
			assert_ok(ls_dataset_read_bytes(set, i, bytes, &label));
			seen[label][bytes[0] - 40 * label]++;
		}
		ls_dataset_free(set);
	}
	assert_int_equal(counts[0] + counts[1], 120);
	assert_in_range(counts[1], 4, 24);
	for (int c = 0; c < 3; c++)
		for (int i = 0; i < 40; i++)
			assert_int_equal(seen[c][i], 1);
}

/* N of them, of all classes. */
static void test_fewer_samples(void **state)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	uint8_t bytes[4 * 4];
	int of[3] = { 0 };
	int32_t label;
	ls_dataset *set = NULL;

	put_classes(*state, 20);
	o.name = *state;
	o.samples = 9;
	o.image_size = 4;
	o.cache = "off";
	assert_ok(ls_dataset_open(&set, &o));
	assert_int_equal(ls_dataset_describe(set)->samples, 9);
	assert_int_equal(ls_dataset_describe(set)->height, 4);
	for (uint64_t i = 0; i < 9; i++) {
		assert_ok(ls_dataset_read_bytes(set, i, bytes, &label));
		of[label]++;
	}
	assert_true(of[0] >= 2 && of[1] >= 2 && of[2] >= 2);
	ls_dataset_free(set);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void test_decoded_once(void **state)
{
	char train[1200], cache[1200], image[1400];
	uint8_t first[SIDE * SIDE], again[SIDE * SIDE];
	int32_t label;

	snprintf(train, sizeof(train), "%s/set", (char *)*state);
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	snprintf(image, sizeof(image), "%s/dog/3.png", train);
	put_classes(train, 20);
	ls_dataset *set = opened(train, LS_SPLIT_TRAIN, cache);
	uint64_t samples = ls_dataset_describe(set)->samples, at = samples;
	for (uint64_t i = 0; i < samples; i++) {
		assert_ok(ls_dataset_read_bytes(set, i, first, &label));
		at = first[0] == 43 ? i : at;
	}
	assert_true(at < samples);
	/* what is decoded no longer needs its file, also of another process, while the folder looks the same */
	spoil(image);
	ls_dataset *other = opened(train, LS_SPLIT_TRAIN, cache);
	assert_ok(ls_dataset_read_bytes(other, at, again, &label));
	assert_int_equal(again[0], 43);
	ls_dataset_free(other);
	/* a file that looks different is read again */
	assert_int_equal(utimensat(AT_FDCWD, image, (struct timespec[]){ { .tv_sec = 9 }, { .tv_sec = 9 } }, 0), 0);
	assert_fails(open_set(&other, train, LS_SPLIT_TRAIN, cache), LS_EFORMAT, "dog/3.png");
	ls_dataset_free(set);
}

/* Records that were never written, written in part, or cut off are absent; another key starts anew. */
static void test_records(void **state)
{
	uint8_t a[100], b[100];
	ls_image_cache *cache = NULL, *same = NULL;
	ls_image_cache_options o = { .path = in_dir(*state, "c"), .key = 7, .images = 5, .bytes = sizeof(a) };

	memset(a, 3, sizeof(a));
	assert_ok(ls_image_cache_open(&cache, &o));
	assert_false(ls_image_cache_get(cache, 2, b));
	ls_image_cache_put(cache, 2, a);
	assert_true(ls_image_cache_get(cache, 2, b));
	assert_memory_equal(a, b, sizeof(a));
	assert_false(ls_image_cache_get(cache, 1, b));
	assert_ok(ls_image_cache_open(&same, &o));
	assert_true(ls_image_cache_get(same, 2, b));
	memset(a, 0, sizeof(a));
	ls_image_cache_put(same, 4, a); /* zeros are not a hole */
	assert_true(ls_image_cache_get(cache, 4, b));
	int fd = open(o.path, O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, 4096 + 2 * 108 + 50), 1);
	assert_false(ls_image_cache_get(cache, 2, b));
	assert_int_equal(ftruncate(fd, 4096 + 4 * 108 + 60), 0);
	close(fd);
	assert_false(ls_image_cache_get(cache, 4, b));
	ls_image_cache_close(same);
	o.key = 8;
	assert_ok(ls_image_cache_open(&same, &o));
	assert_false(ls_image_cache_get(same, 2, b));
	ls_image_cache_put(same, 2, a);
	assert_false(ls_image_cache_get(cache, 2, b)); /* has its own file still */
	ls_image_cache_close(same);
	ls_image_cache_close(cache);
	ls_image_cache_close(NULL);
	o.path = "/proc/nowhere/c";
	assert_int_equal(ls_image_cache_open(&cache, &o), LS_EIO);
	o.path = in_dir(*state, "huge");
	o.images = UINT64_C(1) << 40;
	assert_fails(ls_image_cache_open(&cache, &o), LS_EIO, "decoded images take");
}

/* ---- bad images -------------------------------------------------------------------------------------------------- */

/* The labels and pixels of all samples, in order: what a training sees. */
static uint64_t contents(const ls_dataset *set)
{
	uint64_t hash = 1;
	for (uint64_t i = 0; i < ls_dataset_describe(set)->samples; i++) {
		uint8_t bytes[SIDE * SIDE];
		int32_t label;
		assert_ok(ls_dataset_read_bytes(set, i, bytes, &label));
		hash = hash * 1000003 + 300 * (uint64_t)label + bytes[0];
	}
	return hash;
}

static ls_status open_skipping(ls_dataset **out, const char *root, const char *cache, uint64_t skip_bad)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = root;
	o.cache = cache;
	o.skip_bad = skip_bad;
	return ls_dataset_open(out, &o);
}

/* Five ways to be bad, the first file among them, are left out; with a cache they are remembered. */
static void test_skip_bad(void **state)
{
	char root[1200], path[1400], cache[1200];
	ls_dataset *set = NULL;

	ls_log_set_level(LS_LOG_ERROR);
	snprintf(root, sizeof(root), "%s/set/train", (char *)*state);
	put_classes(root, 8);
	snprintf(root, sizeof(root), "%s/set", (char *)*state);
	put_image(root, "test/cat/0.png", SIDE, 1);
	ls_dataset *whole = opened(root, LS_SPLIT_TRAIN, "off");
	uint64_t wanted = contents(whole);
	ls_dataset_free(whole);
	snprintf(path, sizeof(path), "%s/train/cat/", root);
	put_file(in_dir(path, "-first.png"), "", 0);
	put_file(in_dir(path, "text.png"), "no image", 8);
	size_t bytes;
	uint8_t *good = take_file(in_dir(path, "3.png"), &bytes);
	put_file(in_dir(path, "cut.png"), good, bytes - 20);
	png_resize(good, 40000, 3000);
	put_file(in_dir(path, "bomb.png"), good, bytes);
	free(good);
	assert_int_equal(symlink("/etc/hostname", in_dir(path, "link.png")), 0);
	assert_fails(open_skipping(&set, root, "off", 0), LS_EFORMAT, "train/cat/link.png is a symbolic link");
	assert_fails(open_skipping(&set, root, "off", 4), LS_EFORMAT, "more than options.skip_bad 4");
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	for (int round = 0; round < 3; round++) {
		assert_ok(open_skipping(&set, root, round == 0 ? "off" : cache, 5));
		assert_int_equal(ls_dataset_describe(set)->samples, 24);
		assert_int_equal(set->bad, 5);
		assert_true(contents(set) == wanted);
		ls_dataset_free(set);
	}
	assert_fails(open_skipping(&set, root, cache, 4), LS_EFORMAT, "more than options.skip_bad 4");
	put_file(in_dir(path, "worse.png"), "no image", 8); /* the folder is another one now */
	assert_fails(open_skipping(&set, root, cache, 5), LS_EFORMAT, "more than options.skip_bad 5");
}

/* A text per image is its caption, and a folder with more texts than that is a corpus. */
static void test_captions(void **state)
{
	char name[64];
	ls_dataset *set = NULL;

	put_classes(*state, 20);
	put_file(in_dir(*state, "README.txt"), "words", 5);
	for (int c = 0; c < 2; c++)
		for (int i = 0; i < 20; i++) {
			snprintf(name, sizeof(name), "%s/%d.txt", c ? "cat" : "dog", i);
			put_file(in_dir(*state, name), "a caption", 9);
		}
	assert_true(ls_image_folder_is(*state));
	set = opened(*state, LS_SPLIT_TRAIN, "off");
	assert_int_equal(ls_dataset_describe(set)->classes, 3);
	ls_dataset_free(set);
	for (int i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), "cat/text %d.txt", i);
		put_file(in_dir(*state, name), "a corpus", 8);
	}
	assert_false(ls_image_folder_is(*state));
}

/* A small file that declares many pixels is refused before memory is taken. */
static void test_bomb(void **state)
{
	char root[1200];

	snprintf(root, sizeof(root), "%s/set", (char *)*state);
	put_image(root, "train/a/1.png", SIDE, 1);
	put_image(root, "train/b/1.png", SIDE, 1);
	size_t bytes;
	uint8_t *good = take_file(in_dir(root, "train/b/1.png"), &bytes);
	png_resize(good, 11000, 11000);
	put_file(in_dir(root, "train/b/1.png"), good, bytes);
	free(good);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "cannot hold the 11000x11000 pixels");
}

/* Test images of a model that takes another shape. */
static void test_shape(void **state)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;

	put_classes(*state, 20);
	o.name = *state;
	o.cache = "off";
	o.split = LS_SPLIT_TEST;
	o.channels = 3;
	o.height = 5;
	o.width = 7;
	assert_ok(ls_dataset_open(&set, &o));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_true(info->channels == 3 && info->height == 5 && info->width == 7);
	ls_dataset_free(set);
	o.width = 0;
	assert_fails(ls_dataset_open(&set, &o), LS_EINVALID, "all positive");
}

/* ---- the kept list ----------------------------------------------------------------------------------------------- */

static uint64_t count_of(const char *root, const char *cache)
{
	ls_dataset *set = opened(root, LS_SPLIT_TRAIN, cache);
	uint64_t samples = ls_dataset_describe(set)->samples;
	ls_dataset_free(set);
	return samples;
}

/* Images of kinds that are not read, as the list counts them; it is read from a kept one where `is_kept`. */
static void check_others(const char *root, const char *cache, int is_kept, uint64_t others)
{
	ls_image_list_options o = { .path = root, .split = LS_SPLIT_TRAIN, .index = cache };
	ls_image_list list;

	assert_ok(ls_image_list_read(&list, &o));
	assert_int_equal(list.loaded != NULL, is_kept);
	assert_int_equal(list.others, others);
	assert_string_equal(list.other, others > 0 ? "cat/0.webp" : "");
	ls_image_list_release(&list);
}

/* A second later: younger folders are not kept. */
static void wait_a_second(void)
{
	struct timespec pause = { .tv_sec = 1, .tv_nsec = 50000000 };
	nanosleep(&pause, NULL);
}

/* Whatever happens to the folder is noticed. */
static void test_kept_list(void **state)
{
	char root[1200], cache[1200], path[1400];
	uint8_t bytes[SIDE * SIDE];
	int32_t label;

	snprintf(root, sizeof(root), "%s/set", (char *)*state);
	snprintf(path, sizeof(path), "%s/train", root);
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	put_classes(path, 5);
	put_image(root, "test/cat/0.png", SIDE, 1);
	put_file(in_dir(root, "train/cat/0.webp"), "RIFF", 4);
	put_file(in_dir(root, "train/cat/0.txt"), "a text", 6);
	snprintf(path, sizeof(path), "%s/*.index", cache);
	assert_int_equal(count_of(root, cache), 15);
	assert_int_equal(count_matches(path), 0); /* too young */
	wait_a_second();
	check_others(root, NULL, 0, 1);
	assert_int_equal(count_of(root, cache), 15);
	assert_int_equal(count_matches(path), 1);
	assert_int_equal(count_of(root, cache), 15);
	check_others(root, cache, 1, 1);
	assert_int_equal(unlink(in_dir(root, "train/cat/0.webp")), 0);
	check_others(root, cache, 0, 0);
	put_image(root, "train/dog/new.png", SIDE, 200);
	assert_int_equal(count_of(root, cache), 16);
	assert_int_equal(unlink(in_dir(root, "train/dog/0.png")), 0);
	put_image(root, "train/fox/deep/below.png", SIDE, 200);
	assert_int_equal(count_of(root, cache), 16);
	wait_a_second();
	assert_int_equal(count_of(root, cache), 16);
	put_image(root, "train/fox/deep/other.png", SIDE, 200);
	assert_int_equal(count_of(root, cache), 17);
	wait_a_second();
	assert_int_equal(count_of(root, cache), 17);
	/* written in place, so that the folder's time stays: seen by the file's own */
	int fd = open(in_dir(root, "train/cat/0.png"), O_WRONLY);
	size_t size;
	uint8_t *other = take_file(in_dir(root, "train/cat/4.png"), &size);
	assert_true(fd >= 0 && ftruncate(fd, 0) == 0 && write(fd, other, size) == (ssize_t)size);
	close(fd);
	free(other);
	ls_dataset *set = opened(root, LS_SPLIT_TRAIN, cache);
	assert_ok(ls_dataset_read_bytes(set, 0, bytes, &label));
	assert_int_equal(bytes[0], 4);
	ls_dataset_free(set);
	wait_a_second();
	assert_int_equal(count_of(root, cache), 17);
	assert_ok(ls_path_remove_tree(in_dir(root, "test"))); /* now some training images are for tests */
	assert_in_range(count_of(root, cache), 10, 16);
}

/* A list that is damaged is made again. */
static void test_damaged_list(void **state)
{
	char root[1200], cache[1200], pattern[1400];
	glob_t found = { 0 };

	snprintf(root, sizeof(root), "%s/set", (char *)*state);
	snprintf(cache, sizeof(cache), "%s/cache", (char *)*state);
	put_classes(root, 30);
	wait_a_second();
	uint64_t samples = count_of(root, cache);
	snprintf(pattern, sizeof(pattern), "%s/*.index", cache);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	size_t bytes;
	uint8_t *whole = take_file(found.gl_pathv[0], &bytes);
	for (size_t at = 0; at < bytes; at += 97) {
		whole[at] ^= 1;
		put_file(found.gl_pathv[0], whole, bytes);
		whole[at] ^= 1;
		assert_int_equal(count_of(root, cache), samples);
	}
	put_file(found.gl_pathv[0], whole, bytes / 2);
	assert_int_equal(count_of(root, cache), samples);
	free(whole);
	globfree(&found);
}

/* ---- folders that are wrong -------------------------------------------------------------------------------------- */

static void test_mistakes(void **state)
{
	char root[1200], path[1400], outside[1200];

	snprintf(root, sizeof(root), "%s/set", (char *)*state);
	snprintf(outside, sizeof(outside), "%s/else", (char *)*state);
	put_image(outside, "x/1.png", SIDE, 1);
	put_classes(root, 20);
	snprintf(path, sizeof(path), "%s/fox", root);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "set/fox has no image");
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/dog/link.png", root);
	snprintf(outside, sizeof(outside), "%s/else/x/1.png", (char *)*state);
	assert_int_equal(symlink(outside, path), 0);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "dog/link.png is a symbolic link to");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "leads nowhere");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/ape", root);
	assert_int_equal(symlink("dog", path), 0);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "set/ape is a symbolic link to a folder");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/cat/loop", root);
	assert_int_equal(symlink("..", path), 0);
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "cat/loop is a symbolic link to a folder");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/dog/text.png", root);
	assert_ok(ls_file_put_text(path, "no image"));
	expect_failure(root, LS_SPLIT_TRAIN, LS_EFORMAT, "dog/text.png is neither a PNG nor a JPEG image");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/large", (char *)*state);
	put_image(path, "train/a/1.png", 600, 1);
	put_image(path, "train/b/1.png", 600, 2);
	put_image(path, "test/c/1.png", 600, 2);
	expect_failure(path, LS_SPLIT_TRAIN, LS_EINVALID, "has 600x600 pixels: set options.image_size");
	snprintf(path, sizeof(path), "%s/single", (char *)*state);
	for (int i = 0; i < 60; i++) { /* whose one image is for tests, of several classes */
		snprintf(outside, sizeof(outside), "class %d/0.png", i);
		put_image(path, outside, SIDE, 1);
	}
	expect_failure(path, LS_SPLIT_TRAIN, LS_EFORMAT,
		       " of 60 classes are for tests, by the hash of their names, the first");
	snprintf(path, sizeof(path), "%s/large", (char *)*state);
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;
	o.name = path;
	o.image_size = 8;
	o.cache = "off";
	o.split = LS_SPLIT_TEST;
	assert_fails(ls_dataset_open(&set, &o), LS_EMISMATCH, "large/test has a class 'c'");
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_train_and_test_folders, test_split_by_name, test_fewer_samples,
	       test_decoded_once, test_records, test_skip_bad, test_captions, test_bomb, test_shape, test_kept_list,
	       test_damaged_list, test_mistakes)
