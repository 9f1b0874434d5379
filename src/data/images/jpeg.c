/*
 * jpeg.c - JPEG by libjpeg-turbo, with the accurate transform, which has the same bits with any instruction set.
 */
#include "base/status.h"
#include "data/images/image.h"

#ifdef LS_HAVE_JPEG
#include <turbojpeg.h>

static ls_status fail(tjhandle decoder, const char *name)
{
	return ls_fail(LS_EFORMAT, "%s: not a JPEG image that can be read: %s", name, tjGetErrorStr2(decoder));
}

/* A file whose end is missing decodes to grey areas, with a warning: that is no image to predict. */
static ls_status decode(tjhandle decoder, ls_image *image, const uint8_t *bytes, size_t size, const char *name,
			uint64_t pixels_max)
{
	int subsampling, colours;

	if (tjDecompressHeader3(decoder, bytes, size, &image->width, &image->height, &subsampling, &colours) != 0)
		return fail(decoder, name);
	if (colours == TJCS_CMYK || colours == TJCS_YCCK)
		return ls_fail(LS_EFORMAT, "%s: a CMYK image for print; convert it to RGB", name);
	image->channels = colours == TJCS_GRAY ? 1 : 3;
	LS_TRY(ls_image_alloc(image, name, pixels_max));
	int format = image->channels == 1 ? TJPF_GRAY : TJPF_RGB;
	if (tjDecompress2(decoder, bytes, size, image->pixels, image->width, 0, image->height, format,
			  TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
		return fail(decoder, name);
	return LS_OK;
}

ls_status ls_jpeg_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max)
{
	ls_image image = { 0 };
	tjhandle decoder = tjInitDecompress();

	if (!decoder)
		return ls_fail(LS_EMEMORY, "%s: no memory to read it", name);
	ls_status status = decode(decoder, &image, bytes, size, name, pixels_max);
	tjDestroy(decoder);
	if (status == LS_OK)
		*out = image;
	else
		ls_image_release(&image);
	return status;
}

#else

ls_status ls_jpeg_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max)
{
	(void)out;
	(void)bytes;
	(void)size;
	(void)pixels_max;
	return ls_fail(LS_EUNSUPPORTED, "%s is a JPEG image, and this build of Lockstep was made without libturbojpeg",
		       name);
}

#endif
