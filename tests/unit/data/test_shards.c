/*
 * Tar shards: samples are put together, labels become classes, names of every length are read,
 * and archives that are wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "data/dataset.h"
#include "data/readers/image_list.h"
#include "data/readers/tar_members.h"
#include "support/png_writer.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { SIDE = 5, BLOCK = 512 };

/* ---- making shards ----------------------------------------------------------------------------------------------- */

typedef struct tar {
	uint8_t bytes[1 << 18];
	size_t size;
} tar;

static void add_type(tar *t, const char *name, char type, const void *data, size_t bytes)
{
	uint8_t *h = t->bytes + t->size;
	unsigned sum = 0;

	memset(h, 0, BLOCK);
	memcpy(h, name, strlen(name) < 100 ? strlen(name) : 100);
	snprintf((char *)h + 124, 12, "%011zo", bytes);
	memset(h + 148, ' ', 8);
	h[156] = (uint8_t)type;
	memcpy(h + 257, "ustar", 6);
	for (int i = 0; i < BLOCK; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
	if (bytes)
		memcpy(h + BLOCK, data, bytes);
	t->size += BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static void add(tar *t, const char *name, const char *text)
{
	add_type(t, name, '0', text, strlen(text));
}

static void add_png(tar *t, const char *name, uint8_t value)
{
	uint8_t pixels[SIDE * SIDE];
	memset(pixels, value, sizeof(pixels));
	png_file png = png_make(SIDE, SIDE, 8, 0, pixels, SIDE, NULL, 0);
	add_type(t, name, '0', png.bytes, png.size);
	free(png.bytes);
}

/* A sample with a label as a text. */
static void add_sample(tar *t, const char *key, uint8_t value, const char *label)
{
	char name[256];
	snprintf(name, sizeof(name), "%s.cls", key);
	add(t, name, label);
	snprintf(name, sizeof(name), "%s.png", key);
	add_png(t, name, value);
}

static void put_tar(const char *dir, const char *name, tar *t)
{
	memset(t->bytes + t->size, 0, 2 * BLOCK);
	put_file(in_dir(dir, name), t->bytes, t->size + 2 * BLOCK);
	*t = (tar){ .size = 0 };
}

static ls_status open_split(ls_dataset **out, const char *path, ls_split split, uint64_t skip_bad)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = path;
	o.split = split;
	o.cache = "off";
	o.skip_bad = skip_bad;
	return ls_dataset_open(out, &o);
}

static void expect_sample(const ls_dataset *set, uint64_t index, uint8_t value, int32_t label)
{
	uint8_t bytes[SIDE * SIDE];
	int32_t found;
	assert_ok(ls_dataset_read_bytes(set, index, bytes, &found));
	assert_int_equal(bytes[SIDE], value);
	assert_int_equal(found, label);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

static tar t;

static void test_numbers(void **state)
{
	ls_dataset *set = NULL;

	add_sample(&t, "b/0001", 10, "2\n");
	add_png(&t, "b/0002.png", 11);
	add(&t, "b/0002.json", "{\"label\": 1, \"width\": 5}");
	add(&t, "b/0002.txt", "a caption");
	put_tar(*state, "set-train-000001.tar", &t);
	add_sample(&t, "a/0009", 12, "0");
	add(&t, "README", "no sample");
	put_tar(*state, "set-train-000000.tar", &t);
	add_sample(&t, "x", 13, "1");
	put_tar(*state, "set-val-000000.tar", &t);
	assert_ok(open_split(&set, *state, LS_SPLIT_TRAIN, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 3);
	assert_int_equal(ls_dataset_describe(set)->classes, 3);
	assert_null(set->class_names);
	expect_sample(set, 0, 12, 0); /* shards in the order of their names */
	expect_sample(set, 1, 10, 2);
	expect_sample(set, 2, 11, 1);
	ls_dataset_free(set);
	assert_ok(open_split(&set, *state, LS_SPLIT_TEST, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 1);
	assert_int_equal(ls_dataset_describe(set)->classes, 3);
	expect_sample(set, 0, 13, 1);
	ls_dataset_free(set);
}

static void test_names(void **state)
{
	ls_dataset *set = NULL;

	add_sample(&t, "1", 10, " dog ");
	add_sample(&t, "2", 11, "cat");
	add_sample(&t, "3", 12, "7");
	put_tar(*state, "train.tar", &t);
	add_sample(&t, "1", 13, "dog");
	put_tar(*state, "test.tar", &t);
	assert_ok(open_split(&set, *state, LS_SPLIT_TRAIN, 0));
	assert_int_equal(ls_dataset_describe(set)->classes, 3);
	assert_string_equal(set->class_names[0], "7");
	assert_string_equal(set->class_names[1], "cat");
	assert_string_equal(set->class_names[2], "dog");
	expect_sample(set, 0, 10, 2);
	ls_dataset_free(set);
	assert_ok(open_split(&set, *state, LS_SPLIT_TEST, 0));
	expect_sample(set, 0, 13, 2);
	ls_dataset_free(set);
	add_sample(&t, "1", 13, "eel");
	put_tar(*state, "test.tar", &t);
	assert_fails(open_split(&set, *state, LS_SPLIT_TEST, 0), LS_EMISMATCH, "test.tar/1.png has the label 'eel'");
}

/* A single shard: one image in ten is for tests. */
static void test_split(void **state)
{
	ls_dataset *set = NULL;
	uint64_t counts[2];

	for (int i = 0; i < 60; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%04d", i);
		add_sample(&t, key, (uint8_t)i, i % 2 ? "1" : "0");
	}
	put_tar(*state, "digits.tar", &t);
	for (int split = 0; split < 2; split++) {
		assert_ok(open_split(&set, in_dir(*state, "digits.tar"), split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, 0));
		counts[split] = ls_dataset_describe(set)->samples;
		ls_dataset_free(set);
	}
	assert_int_equal(counts[0] + counts[1], 60);
	assert_in_range(counts[1], 1, 20);
}

/* GNU's and pax's headers in front of a member. */
static void test_long_names(void **state)
{
	(void)state;
	char name[300], pax[400];
	ls_tar_member m;
	ls_tar_walk w = { .data = t.bytes, .path = "x.tar" };
	int more;

	memset(name, 'n', sizeof(name));
	memcpy(name + 295, ".png", 5);
	add_type(&t, "././@LongLink", 'L', name, 300);
	add_type(&t, "short", '0', "abc", 3);
	snprintf(pax, sizeof(pax), "20 mtime=1234567890\n%zu path=%s\n", strlen(name) + 10, name);
	add_type(&t, "PaxHeader/x", 'x', pax, strlen(pax));
	add_type(&t, "short", '0', "abcd", 4);
	add_type(&t, "plain", '0', "abcde", 5);
	w.bytes = t.size;
	for (size_t i = 0; i < 3; i++) {
		assert_ok(ls_tar_walk_next(&w, &m, &more));
		assert_true(more && m.is_file);
		assert_string_equal(m.name, i < 2 ? name : "plain");
		assert_int_equal(m.bytes, 3 + i);
		assert_memory_equal(t.bytes + m.offset, "abcde", 3 + i);
	}
	assert_ok(ls_tar_walk_next(&w, &m, &more));
	assert_false(more);
	t = (tar){ .size = 0 };

	char longer[1100]; /* cut, it would lose its ending */
	memset(longer, 'n', sizeof(longer));
	add_type(&t, "././@LongLink", 'L', longer, sizeof(longer));
	w.at = 0;
	w.bytes = t.size;
	assert_fails(ls_tar_walk_next(&w, &m, &more), LS_EFORMAT, "longer than 1023 bytes");
	t = (tar){ .size = 0 };
}

/* ---- archives that are wrong ------------------------------------------------------------------------------------- */

static void test_mistakes(void **state)
{
	static const char *const parts[] = {
		"train.tar: member '../../evil.png' has a name that leads out of the archive",
		"train.tar: member '/etc/evil.cls' has a name that leads out of the archive",
		"train.tar: member 'link.png' is not a regular file",
		"train.tar/bare has an image but no label",
		"train.tar/lonely has a label but no image",
		"train.tar/twice has two images or two labels",
		"train.tar/empty.cls is not a label",
		"train.tar/none.json has no \"label\"",
		"train.tar: member '1.jpg' is of a sample that is there already"
	};
	ls_dataset *set = NULL;

	ls_log_set_level(LS_LOG_ERROR);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		add_sample(&t, "0", 1, "0");
		add_sample(&t, "1", 2, "1");
		if (i == 0)
			add_png(&t, "../../evil.png", 3);
		if (i == 1)
			add(&t, "/etc/evil.cls", "1");
		if (i == 2)
			add_type(&t, "link.png", '2', "", 0);
		if (i == 3)
			add_png(&t, "bare.png", 1);
		if (i == 4)
			add(&t, "lonely.cls", "1");
		if (i == 5)
			add_sample(&t, "twice", 1, "0");
		if (i == 5)
			add_png(&t, "twice.jpg", 1);
		if (i == 6)
			add_sample(&t, "empty", 1, " \n");
		if (i == 7)
			add(&t, "none.json", "{\"label\": 0.5}");
		if (i == 8) { /* not next to the other members of sample 1 */
			add_sample(&t, "2", 2, "1");
			add(&t, "1.cls", "1");
			add_png(&t, "1.jpg", 4);
		}
		put_tar(*state, "train.tar", &t);
		assert_fails(open_split(&set, in_dir(*state, "train.tar"), LS_SPLIT_TRAIN, 0), LS_EFORMAT, parts[i]);
		assert_fails(open_split(&set, in_dir(*state, "train.tar"), LS_SPLIT_TRAIN, 0), LS_EFORMAT,
			     "; options.skip_bad N leaves out up to N samples");
		assert_ok(open_split(&set, in_dir(*state, "train.tar"), LS_SPLIT_TRAIN, 1));
		assert_int_equal(ls_dataset_describe(set)->samples, i == 8 ? 3 : 2);
		assert_int_equal(set->bad, 1);
		expect_sample(set, 1, 2, 1);
		ls_dataset_free(set);
	}
}

/* The same name in two shards is of two samples. */
static void test_same_names_in_shards(void **state)
{
	ls_dataset *set = NULL;

	for (int i = 0; i < 2; i++) {
		add_sample(&t, "0", (uint8_t)(10 + 2 * i), "0");
		add_sample(&t, "1", (uint8_t)(11 + 2 * i), "1");
		put_tar(*state, i ? "train-1.tar" : "train-0.tar", &t);
	}
	assert_ok(open_split(&set, *state, LS_SPLIT_TRAIN, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 4);
	expect_sample(set, 3, 13, 1);
	ls_dataset_free(set);
}

/* A tar file that is cut anywhere has fewer members, or is refused as truncated. */
static void test_cuts(void **state)
{
	ls_image_list list = { .root = NULL };
	const char *path = in_dir(*state, "train.tar");
	int truncated = 0;

	add_sample(&t, "0", 1, "0");
	add_sample(&t, "1", 2, "1");
	for (size_t cut = 0; cut < t.size; cut += 13) {
		ls_tar_walk w = { .data = t.bytes, .bytes = cut, .path = "x.tar" };
		ls_tar_member m;
		int more = 1, members = 0;
		ls_status status = LS_OK;
		while (status == LS_OK && more) {
			status = ls_tar_walk_next(&w, &m, &more);
			members += status == LS_OK && more;
			assert_true(status != LS_OK || !more || m.offset + m.bytes <= cut);
		}
		truncated += status != LS_OK;
		assert_true(status == LS_OK ? members <= 4 : members < 4);
		if (status != LS_OK)
			assert_fails(status, LS_EFORMAT, "x.tar: truncated: it ends inside of");
	}
	assert_true(truncated > 100);
	put_file(path, t.bytes, 3 * BLOCK / 2 + BLOCK);
	const ls_image_list_options cut = { .path = path };
	assert_fails(ls_image_list_read(&list, &cut), LS_EFORMAT, "train.tar: truncated: it ends inside of a header");
	t.bytes[200] ^= 1;
	put_file(path, t.bytes, t.size);
	const ls_image_list_options o = { .path = path };
	assert_fails(ls_image_list_read(&list, &o), LS_EFORMAT, "damaged at byte 0: the checksum of a header is wrong");
	t = (tar){ .size = 0 };
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_numbers, test_names, test_split, test_long_names, test_mistakes,
	       test_same_names_in_shards, test_cuts)
