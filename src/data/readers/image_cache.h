/*
 * image_cache.h - decoded images in a file, so that none is decoded twice.
 *
 * A file of fixed records, one per image: a checksum and its bytes. It is written while images are first read, in any
 * order, by any number of threads and processes: all write the same bytes. A record that was never written, or only in
 * part, has a wrong checksum and counts as absent; so does every record of a file that is cut short. A full disk makes
 * images absent, too, and nothing else.
 */
#ifndef LS_DATA_READERS_IMAGE_CACHE_H
#define LS_DATA_READERS_IMAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_image_cache ls_image_cache;

/* What the records are of: caches of other keys, numbers or sizes are replaced. */
typedef struct ls_image_cache_options {
	const char *path;
	uint64_t key; /* a hash of all that decides about the bytes */
	uint64_t images;
	size_t bytes; /* of an image */
} ls_image_cache_options;

/* LS_EIO: it cannot be written there, or there is no room: the message says why. */
ls_status ls_image_cache_open(ls_image_cache **out, const ls_image_cache_options *options);
void ls_image_cache_close(ls_image_cache *cache); /* harmless on NULL */

/* 1: the image is there, and in `bytes`. */
int ls_image_cache_get(const ls_image_cache *cache, uint64_t index, uint8_t *bytes);
/* Failures are ignored: the image is decoded again. */
void ls_image_cache_put(const ls_image_cache *cache, uint64_t index, const uint8_t *bytes);

#endif
