/*
 * fake_root.h - a directory that stands for /, with the files of a machine that a test makes up.
 */
#ifndef LS_TESTS_FAKE_ROOT_H
#define LS_TESTS_FAKE_ROOT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

static char root[64];

static inline int make_root(void **state)
{
	const char *parent = getenv("TMPDIR");
	(void)state;
	snprintf(root, sizeof(root), "%.40s/ls-root-XXXXXX", parent && strlen(parent) < 40 ? parent : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state)
{
	(void)state;
	return ls_path_remove_tree(root) == LS_OK ? 0 : -1;
}

static inline void put(const char *directory, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s%s", root, directory);
	assert_int_equal(ls_path_make(path), LS_OK);
	snprintf(path, sizeof(path), "%s%s/%s", root, directory, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#endif
