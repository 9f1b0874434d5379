/* A temporary directory for a test group, removed at its end. */
#ifndef LS_TEST_METRICS_SCRATCH_H
#define LS_TEST_METRICS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

static char scratch[512];

static inline int scratch_make(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	snprintf(scratch, sizeof(scratch), "%s/lockstep-metrics-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
	(void)state;
	return ls_path_remove_tree(scratch) == LS_OK ? 0 : -1;
}

static inline const char *scratch_path(const char *name)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

/* Whole contents with a 0 behind; the caller frees. NULL when it cannot be read. */
static inline char *scratch_read(const char *path, size_t *bytes)
{
	FILE *stream = fopen(path, "rb");
	if (!stream)
		return NULL;
	char *text = calloc(1, 1 << 20);
	*bytes = fread(text, 1, (1 << 20) - 1, stream);
	fclose(stream);
	return text;
}

/* Names in `directory` that begin with `prefix`; the last one found goes to `name` when that is not NULL. */
static inline int scratch_count(const char *directory, const char *prefix, char name[256])
{
	int found = 0;
	DIR *stream = opendir(directory);
	for (struct dirent *entry; stream && (entry = readdir(stream));) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		if (name)
			snprintf(name, 256, "%s", entry->d_name);
		found++;
	}
	if (stream)
		closedir(stream);
	return found;
}

#endif
