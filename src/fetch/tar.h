/*
 * tar.h - extract named files from a .tar.gz. Archives come from outside: names are only compared, and
 * become paths only when they are letters, digits, '_', '-' and '.', not a '.' first.
 */
#ifndef LS_FETCH_TAR_H
#define LS_FETCH_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_tar_want {
	const char *member; /* name in the archive: "package/data/x" */
	const char *path;   /* where to write it; whole or absent */
	uint64_t limit;     /* most bytes it may have */
	int found;          /* set */
} ls_tar_want;

ls_status ls_tar_extract(const char *archive, ls_tar_want *wants, size_t count);

/* Extract every file named `prefix`NAME`suffix` to dir/NAMEsuffix; others are skipped. *count: number of files. At most
 * `limit` bytes in all. */
ls_status ls_tar_extract_all(const char *archive, const char *prefix, const char *suffix, const char *dir,
			     uint64_t limit, size_t *count);

#endif
