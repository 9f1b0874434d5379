/*
 * file_target.h - inside of files.h: where a name leads, for drafts.
 */
#ifndef LS_BASE_FILE_TARGET_H
#define LS_BASE_FILE_TARGET_H

#include <sys/stat.h>

#include "base/files.h"

/* The directory that holds `path`. */
ls_status ls_path_parent(char directory[4096], const char *path);

/* Where `path` leads: `out` is the file to replace or, with `direct`, a device, a pipe or our own output, which are
 * written to as they are. Anything else that is there is refused. */
ls_status ls_file_target(char out[4096], int *direct, const char *path);

/* Behind /dev/stdout may be a file, which the shell has opened and perhaps appends to: it must not be replaced. */
int ls_file_is_output(const struct stat *there);

#endif
