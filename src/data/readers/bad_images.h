/*
 * bad_images.h - images that cannot be read: found once, before training, and left out on every node alike.
 *
 * Whether an image is bad depends on its bytes and on the shape alone. Which are is kept beside the cache of decoded
 * images, so that the next start need not read all of them again.
 */
#ifndef LS_DATA_READERS_BAD_IMAGES_H
#define LS_DATA_READERS_BAD_IMAGES_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct ls_bad_image {
	uint64_t place;
	const char *why;
} ls_bad_image;

typedef struct ls_bad_images {
	ls_arena arena;
	uint64_t count;
	ls_bad_image *image; /* (count) in the order of places */
	size_t room;
	int is_passing; /* one could not be read at all, which may pass: not to be kept */
} ls_bad_images;

/* Try all images on all cores. One that fails because of its bytes is bad; another failure, such as of memory, is the
 * result. Gives up when more than `most` are found. */
typedef ls_status (*ls_image_try)(void *context, uint64_t place);
ls_status ls_bad_images_find(ls_bad_images *out, uint64_t images, uint64_t most, ls_image_try try, void *context);
void ls_bad_images_release(ls_bad_images *bad); /* harmless when it is zero */

/* From and to a file. The key is that of the image cache. *found = 0: there is none of that key. Failures to write are
 * ignored. */
ls_status ls_bad_images_load(ls_bad_images *out, const char *path, uint64_t key, uint64_t images, int *found);
void ls_bad_images_save(const ls_bad_images *bad, const char *path, uint64_t key);

/* The text of such a file. */
ls_status ls_bad_images_parse(ls_bad_images *out, const char *text, size_t bytes, uint64_t key, uint64_t images,
			      int *found);

#endif
