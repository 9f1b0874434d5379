/*
 * zip.h - members of a ZIP archive held in memory: stored or deflated, no encryption, of any size (ZIP64).
 *
 * Archives come from outside: every offset is checked against the bytes there are, a member's checksum against its
 * contents, and names are for comparing, never for making paths.
 */
#ifndef LS_DATA_READERS_ZIP_H
#define LS_DATA_READERS_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_zip {
	const uint8_t *data; /* (bytes) */
	size_t bytes;
	const char *name;   /* for errors */
	size_t next, end;   /* of the central directory */
	uint64_t left, all; /* members */
} ls_zip;

typedef struct ls_zip_member {
	char name[256]; /* longer ones are cut */
	int method;     /* 0 stored, 8 deflated; others cannot be read */
	int encrypted;
	uint32_t crc;
	size_t packed, bytes; /* in the archive, and plain */
	size_t header;        /* where its local header is */
} ls_zip_member;

/* Find the central directory. `data` stays the caller's and must outlive the archive. */
ls_status ls_zip_open(ls_zip *zip, const uint8_t *data, size_t bytes, const char *name);

/* The next member; *more = 0 when there is none. */
ls_status ls_zip_next(ls_zip *zip, ls_zip_member *out, int *more);

/* The contents of a member that is stored (method 0) where they are, unchecked: member->bytes inside the archive. */
ls_status ls_zip_view(const ls_zip *zip, const ls_zip_member *member, const uint8_t **out);

/* Its contents, member->bytes of them. The caller has decided that this is not too much. */
ls_status ls_zip_read(const ls_zip *zip, const ls_zip_member *member, uint8_t *out);

#endif
