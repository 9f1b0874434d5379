/*
 * common.h - what fuzz targets share: a check that ends the program, and a directory for parsers that read files.
 */
#ifndef LS_FUZZ_COMMON_H
#define LS_FUZZ_COMMON_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_require(int holds)
{
	if (!holds)
		abort();
}

/* Remove the files of a directory. */
static inline void fuzz_empty(const char *directory)
{
	DIR *list = opendir(directory);
	fuzz_require(list != NULL);
	for (struct dirent *entry; (entry = readdir(list));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			fuzz_require(unlinkat(dirfd(list), entry->d_name, 0) == 0);
	closedir(list);
}

static char fuzz_directory_path[4096];

static inline void fuzz_directory_remove(void)
{
	fuzz_empty(fuzz_directory_path);
	rmdir(fuzz_directory_path);
}

/* An empty directory of this process in $TMPDIR, removed at its end. */
static inline const char *fuzz_directory(void)
{
	if (!fuzz_directory_path[0]) {
		const char *parent = getenv("TMPDIR");
		snprintf(fuzz_directory_path, sizeof(fuzz_directory_path), "%s/lockstep-fuzz.XXXXXX",
			 parent ? parent : "/tmp");
		fuzz_require(mkdtemp(fuzz_directory_path) && atexit(fuzz_directory_remove) == 0);
	}
	return fuzz_directory_path;
}

/* "<directory>/<name>", valid until the next call. */
static inline const char *fuzz_path(const char *name)
{
	static char path[sizeof(fuzz_directory_path) + 64];
	snprintf(path, sizeof(path), "%s/%.60s", fuzz_directory(), name);
	return path;
}

static inline void fuzz_write(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	fuzz_require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* A text that ends with a zero, owned by the caller. */
static inline char *fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);
	fuzz_require(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
