/*
 * image.h - a decoded image, and the way from it to the input of a model.
 *
 *     bytes -> PNG or JPEG decoder -> pixels -> grey or colour, as the model wants -> scaled to its size -> rounded
 *     -> normalised
 *
 * Files come from outside: their size in pixels is checked before memory is taken for them, and what all threads of a
 * process take for it at the same time is limited (budget.h), so a thread has one decoded image at a time. A pixel is a
 * number from 0 to 255, of 16-bit files with fractions, so that every source of images is normalised by one formula,
 * that of datasets: (pixel / 255 - mean) / deviation.
 */
#ifndef LS_DATA_IMAGES_IMAGE_H
#define LS_DATA_IMAGES_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/data.h>

/* Neither side may be longer, whatever the product: weights to scale a line are kept for all of it. */
#define LS_IMAGE_SIDE_MAX 65535

typedef struct ls_image {
	int channels; /* 1: grey, 3: RGB */
	int height, width;
	int deep;        /* 1: 16 bits a value */
	void *pixels;    /* (height, width, channels) of uint8_t or uint16_t */
	size_t reserved; /* bytes of the budget (budget.h) that decoding it took, until it is released */
} ls_image;

typedef enum ls_image_kind { LS_IMAGE_NONE, LS_IMAGE_PNG, LS_IMAGE_JPEG } ls_image_kind;

/* By the first bytes; 8 are enough. */
ls_image_kind ls_image_sniff(const uint8_t *bytes, size_t size);

typedef struct ls_image_shape {
	int channels, height, width;
} ls_image_shape;

/* Decode a whole file. `name` stands for it in messages; an image of more than `pixels_max` pixels is refused.
 * Transparency is dropped, palettes are looked up, and an image that was taken sideways is set upright. */
ls_status ls_image_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max);
/* The same for an image that will be scaled to `least`: a JPEG of at least twice that size is decoded at a half, a
 * quarter or an eighth of its size, which takes a fraction of the time. */
ls_status ls_image_decode_for(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max,
			      const ls_image_shape *least);
void ls_image_release(ls_image *image); /* harmless when it is zero */

/* Channels, height and width as ls_image_decode() gives them, by the first bytes of the file alone. */
ls_status ls_image_peek(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name);
ls_status ls_jpeg_peek(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name);

/* The decoders; LS_EUNSUPPORTED in builds without the library. least: NULL, or as above. */
ls_status ls_png_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max);
ls_status ls_jpeg_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max,
			 const ls_image_shape *least);

/* Write (height, width, channels) bytes, grey or RGB, to a PNG file; LS_EUNSUPPORTED in builds without the library. */
ls_status ls_png_write(const char *path, const uint8_t *pixels, ls_image_shape shape);

/* Whether an image may be that large, before anything is decoded. */
ls_status ls_image_check(const ls_image *image, const char *name, uint64_t pixels_max);
/* Wait until decoders may have as many bytes more. */
void ls_image_reserve(ls_image *image, size_t bytes);
/* Memory for the pixels of an image whose other fields are set, which are checked. */
ls_status ls_image_alloc(ls_image *image, const char *name, uint64_t pixels_max);

/*
 * Pixels (channels, height, width) from 0 to 255 of an image: RGB becomes grey by 0.299 R + 0.587 G + 0.114 B, grey
 * becomes three equal channels. An image of that height and width is taken as it is. Others are scaled by a triangle
 * filter, which is as wide as the scale when it shrinks them: LS_RESIZE_COVER takes the largest central part that has
 * the aspect ratio of the result, LS_RESIZE_STRETCH all.
 */
ls_status ls_image_resize(const ls_image *image, ls_resize how, ls_image_shape to, float *pixels, const char *name);

/* To whole pixels from 0 to 255: what a model is trained on, and so what it predicts. */
void ls_pixels_round(float *pixels, size_t count);

/* In place: (pixel / 255 - mean) / deviation, as datasets do it. Constants of one channel serve all. */
void ls_pixels_normalise(float *pixels, ls_image_shape shape, const ls_normalisation *normalisation);

#endif
