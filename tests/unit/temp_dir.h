/*
 * temp_dir.h - a directory for a test, below $TMPDIR or /tmp, which is removed with all files, and files in it.
 *
 *     TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_a, ...)      *state is its path
 */
#ifndef LS_TESTS_TEMP_DIR_H
#define LS_TESTS_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "unit/assert_status.h"

enum { TEMP_DIR_NAME = 1024 };

/* Zero on success, as cmocka wants it. */
static inline int temp_dir_create(char out[TEMP_DIR_NAME])
{
	const char *parent = getenv("TMPDIR");
	int length = snprintf(out, TEMP_DIR_NAME, "%s/lockstep-unit-XXXXXX", parent && *parent ? parent : "/tmp");
	return length < TEMP_DIR_NAME && mkdtemp(out) ? 0 : -1;
}

static inline int temp_dir_make(void **state)
{
	*state = malloc(TEMP_DIR_NAME);
	return *state ? temp_dir_create(*state) : -1;
}

static inline int temp_dir_remove(void **state)
{
	ls_status status = ls_path_remove_tree(*state);
	free(*state);
	return status == LS_OK ? 0 : -1;
}

/* dir/name, in one of a few rotating buffers. */
static inline const char *in_dir(const char *dir, const char *name)
{
	static char paths[8][4096];
	static int next;
	char *path = paths[next++ % 8];
	assert_ok(ls_path_join(path, sizeof(paths[0]), dir, name));
	return path;
}

static inline void put_file(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

/* A whole file with a 0 behind it, malloc'd. */
static inline uint8_t *take_file(const char *path, size_t *bytes)
{
	ls_file_map map;
	assert_ok(ls_file_map_open(&map, path));
	uint8_t *copy = malloc(map.bytes + 1);
	assert_non_null(copy);
	if (map.bytes > 0)
		memcpy(copy, map.data, map.bytes);
	copy[map.bytes] = 0;
	*bytes = map.bytes;
	ls_file_map_close(&map);
	return copy;
}

static inline void assert_same_files(const char *a, const char *b)
{
	size_t bytes_a, bytes_b;
	uint8_t *data_a = take_file(a, &bytes_a), *data_b = take_file(b, &bytes_b);
	assert_int_equal(bytes_a, bytes_b);
	assert_memory_equal(data_a, data_b, bytes_a);
	free(data_b);
	free(data_a);
}

#endif
