/*
 * budget.h - memory that decoders of image files have at the same time, in the whole process.
 *
 * A file of some hundred kilobytes may be an image of hundreds of megabytes, and many threads decode. So each asks
 * before it takes memory for pixels, and waits while what others have and what it needs are more than the limit; one
 * that needs more than the limit decodes alone. Who asks first is first, so that a large image is not passed for ever.
 * A thread has one image at a time: it must not ask while it has something.
 */
#ifndef LS_DATA_IMAGES_BUDGET_H
#define LS_DATA_IMAGES_BUDGET_H

#include <stddef.h>

#define LS_DECODING_BYTES_MAX ((size_t)256 << 20)

void ls_decoding_begin(size_t bytes);
void ls_decoding_end(size_t bytes); /* as many as at the beginning; 0: harmless */

#endif
