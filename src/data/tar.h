/*
 * tar.h - take named files out of a .tar.gz. Archives come from outside: names are only compared, never used as paths.
 */
#ifndef LS_DATA_TAR_H
#define LS_DATA_TAR_H

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

#endif
