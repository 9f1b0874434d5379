/*
 * scratch.h - a directory that comes and goes with a test, and the name of a file in it.
 */
#ifndef LS_TEST_BASE_SCRATCH_H
#define LS_TEST_BASE_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"

static char dir[256], path[512];

static int make_dir(void **state)
{
	(void)state;
	const char *parent = getenv("TMPDIR");
	int length = snprintf(dir, sizeof(dir), "%s/ls-files-XXXXXX", parent ? parent : "/tmp");
	return length > 0 && (size_t)length < sizeof(dir) && mkdtemp(dir) &&
			       ls_path_join(path, sizeof(path), dir, "file") == LS_OK
		       ? 0
		       : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return ls_path_remove_tree(dir) == LS_OK ? 0 : -1;
}

#endif
