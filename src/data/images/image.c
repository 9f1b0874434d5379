#include "data/images/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/images/budget.h"
#include "data/images/orientation.h"

ls_image_kind ls_image_sniff(const uint8_t *bytes, size_t size)
{
	static const uint8_t png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' }, jpeg[] = { 0xff, 0xd8, 0xff };

	if (size >= sizeof(png) && memcmp(bytes, png, sizeof(png)) == 0)
		return LS_IMAGE_PNG;
	return size >= sizeof(jpeg) && memcmp(bytes, jpeg, sizeof(jpeg)) == 0 ? LS_IMAGE_JPEG : LS_IMAGE_NONE;
}

ls_status ls_image_check(const ls_image *image, const char *name, uint64_t pixels_max)
{
	uint64_t pixels = (uint64_t)image->height * (uint64_t)image->width;

	if (image->height < 1 || image->width < 1)
		return ls_fail(LS_EFORMAT, "%s: an image of %dx%d pixels", name, image->width, image->height);
	if (pixels > pixels_max || image->height > LS_IMAGE_SIDE_MAX || image->width > LS_IMAGE_SIDE_MAX)
		return ls_fail(LS_EFORMAT, "%s: %dx%d pixels; at most %llu are read, and %d a side", name, image->width,
			       image->height, (unsigned long long)pixels_max, LS_IMAGE_SIDE_MAX);
	return LS_OK;
}

ls_status ls_image_alloc(ls_image *image, const char *name, uint64_t pixels_max)
{
	LS_TRY(ls_image_check(image, name, pixels_max));
	uint64_t pixels = (uint64_t)image->height * (uint64_t)image->width;
	image->pixels = calloc((size_t)pixels * (size_t)image->channels, image->deep ? 2 : 1);
	if (!image->pixels)
		return ls_fail(LS_EMEMORY, "%s: no memory for %dx%d pixels", name, image->width, image->height);
	return LS_OK;
}

static ls_status refuse(size_t size, const char *name)
{
	return ls_fail(LS_EFORMAT,
		       size > 0 ? "%s is neither a PNG nor a JPEG image" : "%s is an empty file, not an image", name);
}

ls_status ls_image_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max)
{
	return ls_image_decode_for(out, bytes, size, name, pixels_max, NULL);
}

ls_status ls_image_decode_for(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max,
			      const ls_image_shape *least)
{
	switch (ls_image_sniff(bytes, size)) {
	case LS_IMAGE_PNG:
		return ls_png_decode(out, bytes, size, name, pixels_max);
	case LS_IMAGE_JPEG:
		return ls_jpeg_decode(out, bytes, size, name, pixels_max, least);
	default:
		return refuse(size, name);
	}
}

static uint32_t big_endian(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The first chunk of a PNG file: width, height, bits, kind of colours (0 and 4 are grey). */
static ls_status peek_png(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name)
{
	enum { IHDR = 12, WIDTH = 16, HEIGHT = 20, COLOURS = 25 };

	if (size <= COLOURS || memcmp(bytes + IHDR, "IHDR", 4) != 0)
		return ls_fail(LS_EFORMAT, "%s: not a PNG image that can be read: it has no header", name);
	uint32_t width = big_endian(bytes + WIDTH), height = big_endian(bytes + HEIGHT);
	if (width < 1 || height < 1 || width > LS_IMAGE_SIDE_MAX || height > LS_IMAGE_SIDE_MAX)
		return ls_fail(LS_EFORMAT, "%s: %ux%u pixels; a side has 1 to %d", name, width, height,
			       LS_IMAGE_SIDE_MAX);
	int is_turned = ls_png_orientation(bytes, size) >= 5;
	*out = (ls_image_shape){ .channels = bytes[COLOURS] == 0 || bytes[COLOURS] == 4 ? 1 : 3,
				 .height = (int)(is_turned ? width : height),
				 .width = (int)(is_turned ? height : width) };
	return LS_OK;
}

ls_status ls_image_peek(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name)
{
	switch (ls_image_sniff(bytes, size)) {
	case LS_IMAGE_PNG:
		return peek_png(out, bytes, size, name);
	case LS_IMAGE_JPEG:
		return ls_jpeg_peek(out, bytes, size, name);
	default:
		return refuse(size, name);
	}
}

void ls_image_reserve(ls_image *image, size_t bytes)
{
	ls_decoding_begin(bytes);
	image->reserved = bytes;
}

void ls_image_release(ls_image *image)
{
	free(image->pixels);
	ls_decoding_end(image->reserved);
	*image = (ls_image){ 0 };
}

void ls_pixels_round(float *pixels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float rounded = rintf(pixels[i]);
		pixels[i] = rounded < 0 ? 0 : rounded > 255 ? 255 : rounded;
	}
}

void ls_pixels_normalise(float *pixels, ls_image_shape shape, const ls_normalisation *n)
{
	size_t positions = (size_t)shape.height * (size_t)shape.width;

	for (int c = 0; c < shape.channels; c++) {
		int from = n->channels == 1 ? 0 : c;
		float mean = (float)n->mean[from], deviation = (float)n->deviation[from];
		float *channel = pixels + (size_t)c * positions;
		for (size_t i = 0; i < positions; i++)
			channel[i] = (channel[i] / 255.0f - mean) / deviation;
	}
}
