/*
 * gzip.h - bytes of a gzip file held in memory, read in order.
 *
 * The caller says how many bytes it wants, so nothing is inflated beyond that: a decompression bomb costs no more than
 * its header declared.
 */
#ifndef LS_DATA_READERS_GZIP_H
#define LS_DATA_READERS_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/status.h"

/* Deflate cannot shrink data to less than 1/1032 of its size. */
#define LS_GZIP_RATIO_MAX 1032

typedef struct ls_gzip {
	z_stream stream;
	const uint8_t *data; /* (bytes) compressed */
	size_t bytes, fed;   /* fed: handed to zlib so far */
	uint64_t produced;
	const char *name; /* for errors */
	int ended;        /* the last member's end was seen and checked */
} ls_gzip;

int ls_gzip_is(const uint8_t *data, size_t bytes); /* starts with gzip's magic */
ls_status ls_gzip_open(ls_gzip *gzip, const uint8_t *data, size_t bytes, const char *name);

/* Read up to `want` bytes; *got < want only at the end of the data, whose checksum has then been verified. */
ls_status ls_gzip_read(ls_gzip *gzip, void *out, size_t want, size_t *got);
void ls_gzip_close(ls_gzip *gzip);

#endif
