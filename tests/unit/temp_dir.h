/*
 * temp_dir.h - a directory for a test, below $TMPDIR or /tmp, and what is in it removed with it.
 *
 *     TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_a, ...)      *state is its path
 */
#ifndef LS_TESTS_TEMP_DIR_H
#define LS_TESTS_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"

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

#endif
