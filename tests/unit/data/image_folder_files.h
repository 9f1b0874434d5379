/*
 * image_folder_files.h - folders of small images, datasets of them, and files of their caches.
 */
#ifndef LS_TESTS_IMAGE_FOLDER_FILES_H
#define LS_TESTS_IMAGE_FOLDER_FILES_H

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "data/dataset.h"
#include "support/png_writer.h"
#include "unit/temp_dir.h"

enum { SIDE = 6 };

/* A grey image, all pixels of one value; its folder is made. */
static inline void put_image(const char *root, const char *name, int side, uint8_t value)
{
	char path[4096];
	uint8_t *pixels = malloc((size_t)side * (size_t)side);

	snprintf(path, sizeof(path), "%s/%s", root, name);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	assert_ok(ls_path_make(path));
	*slash = '/';
	memset(pixels, value, (size_t)side * (size_t)side);
	png_file png = png_make((uint32_t)side, (uint32_t)side, 8, 0, pixels, (size_t)side, NULL, 0);
	assert_ok(ls_file_put(path, png.bytes, png.size));
	free(png.bytes);
	free(pixels);
}

static inline size_t count_matches(const char *pattern)
{
	glob_t found = { 0 };
	size_t count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return count;
}

static inline void remove_matches(const char *pattern)
{
	glob_t found = { 0 };

	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		assert_int_equal(unlink(found.gl_pathv[i]), 0);
	globfree(&found);
}

/* `count` images of each of three classes; pixels of image i of class c are 40 c + i. */
static inline void put_classes(const char *root, int count)
{
	static const char *const names[] = { "cat", "dog", "eel" };
	for (int c = 0; c < 3; c++)
		for (int i = 0; i < count; i++) {
			char name[64];
			snprintf(name, sizeof(name), "%s/%d.png", names[c], i);
			put_image(root, name, SIDE, (uint8_t)(40 * c + i));
		}
}

static inline ls_status open_set(ls_dataset **out, const char *root, ls_split split, const char *cache)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = root;
	o.split = split;
	o.cache = cache;
	return ls_dataset_open(out, &o);
}

static inline ls_dataset *opened(const char *root, ls_split split, const char *cache)
{
	ls_dataset *set = NULL;
	assert_ok(open_set(&set, root, split, cache));
	return set;
}

/* Bytes that are no image, behind the same name, size and time. */
static inline void spoil(const char *image)
{
	struct stat facts;

	assert_int_equal(stat(image, &facts), 0);
	char *garbage = calloc(1, (size_t)facts.st_size);
	int fd = open(image, O_WRONLY);
	assert_true(fd >= 0 && write(fd, garbage, (size_t)facts.st_size) == facts.st_size);
	assert_int_equal(futimens(fd, (struct timespec[]){ facts.st_atim, facts.st_mtim }), 0);
	close(fd);
	free(garbage);
}

#endif
