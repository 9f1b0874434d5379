/*
 * tar_members.h - what is in a tar file, without unpacking: names, kinds and places of its members.
 *
 * ustar, with GNU's and pax's long names and large sizes. Files come from outside: headers are checked by their
 * checksums, sizes against the file. Nothing is made of a name but comparisons and messages.
 */
#ifndef LS_DATA_READERS_TAR_MEMBERS_H
#define LS_DATA_READERS_TAR_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_tar_member {
	char name[1024];
	int is_file;     /* a regular file: no folder, link or device */
	uint64_t offset; /* of its bytes in the tar file */
	uint64_t bytes;
} ls_tar_member;

typedef struct ls_tar_walk {
	const uint8_t *data; /* (bytes) the caller's */
	uint64_t bytes, at;
	const char *path; /* for errors */
} ls_tar_walk;

/* The next member; *more = 0 at the end. LS_EFORMAT: the file is cut short or damaged, and where. */
ls_status ls_tar_walk_next(ls_tar_walk *walk, ls_tar_member *out, int *more);

/* Whether the first 512 bytes of a file are a tar header. */
int ls_tar_is(const uint8_t *data, size_t bytes);

#endif
