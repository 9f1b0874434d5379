/*
 * append.h - a file that grows by whole records.
 *
 * Write to `stream`, then commit: the record is with the operating system, or (a full disk) the file is cut back to
 * where the last commit left it and the failure reported. A later record may succeed again.
 */
#ifndef LS_METRICS_APPEND_H
#define LS_METRICS_APPEND_H

#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"

typedef struct ls_append {
	FILE *stream;
	off_t whole;       /* length at the last commit */
	char buffer[8192]; /* stdio's, ours so that recording never allocates */
	char path[4096];
} ls_append;

/* `flags` are open()'s: O_TRUNC or O_EXCL. On failure errno says why, too. */
ls_status ls_append_open(ls_append *file, const char *path, int flags);
ls_status ls_append_commit(ls_append *file);
int ls_append_share(const ls_append *file); /* another descriptor of it, for fsync(); -1: errno says why */
void ls_append_close(ls_append *file);      /* harmless when never opened (zeroed) */

#endif
