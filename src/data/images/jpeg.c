/*
 * jpeg.c - JPEG by libjpeg-turbo, with the accurate transform, which has the same bits with any instruction set.
 */
#include "base/status.h"
#include "data/images/image.h"
#include "data/images/orientation.h"

#ifdef LS_HAVE_JPEG
#include <turbojpeg.h>

static ls_status fail(tjhandle decoder, const char *name)
{
	return ls_fail(LS_EFORMAT, "%s: not a JPEG image that can be read: %s", name, tjGetErrorStr2(decoder));
}

/* The largest of 1, 2, 4 and 8 by which an image can be divided and still cover `least`. */
static int divisor_for(const ls_image *image, const ls_image_shape *least, int is_turned)
{
	int divisor = 1;

	if (!least)
		return 1;
	int height = is_turned ? least->width : least->height, width = is_turned ? least->height : least->width;
	while (divisor < 8 && image->height / (2 * divisor) >= height && image->width / (2 * divisor) >= width)
		divisor *= 2;
	return divisor;
}

/* Of progressive files, and of those with a scan for each colour, the decoder keeps the coefficients of the whole
 * image, at its full size, before it makes pixels. Segments are 0xff, a kind, and a length that counts itself; the
 * first scan comes behind the frame. What cannot be followed counts as such a file. */
static int keeps_coefficients(const uint8_t *bytes, size_t size)
{
	int components = 0, is_progressive = 0;

	for (size_t at = 2; at + 10 <= size && bytes[at] == 0xff;) {
		int kind = bytes[at + 1], is_table = kind == 0xc4 || kind == 0xc8 || kind == 0xcc;
		size_t length = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
		if (kind == 0xff) { /* any number of them may come first */
			at++;
			continue;
		}
		if (kind == 0xda)
			return is_progressive || bytes[at + 4] < components;
		if (kind >= 0xc0 && kind <= 0xcf && !is_table) {
			components = bytes[at + 9];
			is_progressive = kind != 0xc0 && kind != 0xc1;
		}
		if (length < 2 || length > size - at - 2)
			break;
		at += 2 + length;
	}
	return 1;
}

/* 16 bits each, of blocks of 8x8. */
static size_t coefficient_bytes(const ls_image *image, int subsampling)
{
	size_t positions = ((size_t)image->height + 15) * ((size_t)image->width + 15) * sizeof(int16_t);

	switch (subsampling) {
	case TJSAMP_GRAY:
		return positions;
	case TJSAMP_420:
	case TJSAMP_411:
		return positions + positions / 2;
	case TJSAMP_422:
	case TJSAMP_440:
		return 2 * positions;
	default:
		return 3 * positions;
	}
}

/* A file whose end is missing decodes to grey areas, with a warning: that is no image to predict. */
static ls_status decode(tjhandle decoder, ls_image *image, const uint8_t *bytes, size_t size, const char *name,
			uint64_t pixels_max, const ls_image_shape *least)
{
	int subsampling, colours, orientation = ls_jpeg_orientation(bytes, size);

	if (tjDecompressHeader3(decoder, bytes, size, &image->width, &image->height, &subsampling, &colours) != 0)
		return fail(decoder, name);
	LS_TRY(ls_image_check(image, name, pixels_max));
	size_t needed = keeps_coefficients(bytes, size) ? coefficient_bytes(image, subsampling) : 0;
	int divisor = divisor_for(image, least, orientation >= 5);
	image->width = (image->width + divisor - 1) / divisor;
	image->height = (image->height + divisor - 1) / divisor;
	if (colours == TJCS_CMYK || colours == TJCS_YCCK)
		return ls_fail(LS_EFORMAT, "%s: a CMYK image for print; convert it to RGB", name);
	image->channels = colours == TJCS_GRAY ? 1 : 3;
	size_t pixels = (size_t)image->height * (size_t)image->width * (size_t)image->channels;
	ls_image_reserve(image, needed + (orientation > 1 ? 2 : 1) * pixels);
	LS_TRY(ls_image_alloc(image, name, pixels_max));
	int format = image->channels == 1 ? TJPF_GRAY : TJPF_RGB;
	if (tjDecompress2(decoder, bytes, size, image->pixels, image->width, 0, image->height, format,
			  TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
		return fail(decoder, name);
	return ls_image_set_upright(image, orientation, name);
}

ls_status ls_jpeg_peek(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name)
{
	int width = 0, height = 0, subsampling, colours, is_turned = ls_jpeg_orientation(bytes, size) >= 5;
	tjhandle decoder = tjInitDecompress();

	if (!decoder)
		return ls_fail(LS_EMEMORY, "%s: no memory to read it", name);
	ls_status status = tjDecompressHeader3(decoder, bytes, size, &width, &height, &subsampling, &colours) == 0
				   ? LS_OK
				   : fail(decoder, name);
	tjDestroy(decoder);
	LS_TRY(status);
	*out = (ls_image_shape){ .channels = colours == TJCS_GRAY ? 1 : 3,
				 .height = is_turned ? width : height,
				 .width = is_turned ? height : width };
	return LS_OK;
}

ls_status ls_jpeg_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max,
			 const ls_image_shape *least)
{
	ls_image image = { 0 };
	tjhandle decoder = tjInitDecompress();

	if (!decoder)
		return ls_fail(LS_EMEMORY, "%s: no memory to read it", name);
	ls_status status = decode(decoder, &image, bytes, size, name, pixels_max, least);
	tjDestroy(decoder);
	if (status == LS_OK)
		*out = image;
	else
		ls_image_release(&image);
	return status;
}

#else

ls_status ls_jpeg_peek(ls_image_shape *out, const uint8_t *bytes, size_t size, const char *name)
{
	ls_image none;
	(void)out;
	return ls_jpeg_decode(&none, bytes, size, name, 0, NULL); /* says why it cannot */
}

ls_status ls_jpeg_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max,
			 const ls_image_shape *least)
{
	(void)out;
	(void)bytes;
	(void)size;
	(void)pixels_max;
	(void)least;
	return ls_fail(LS_EUNSUPPORTED, "%s is a JPEG image, and this build of Lockstep was made without libturbojpeg",
		       name);
}

#endif
