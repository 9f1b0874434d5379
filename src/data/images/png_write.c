/*
 * png_write.c - PNG files by libpng.
 */
#include "base/files.h"
#include "base/status.h"
#include "data/images/image.h"

#ifdef LS_HAVE_PNG
#include <png.h>
#include <stdlib.h>

ls_status ls_png_write(const char *path, const uint8_t *pixels, ls_image_shape shape)
{
	png_image png = { .version = PNG_IMAGE_VERSION,
			  .width = (png_uint_32)shape.width,
			  .height = (png_uint_32)shape.height,
			  .format = shape.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY };
	png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
	void *file = malloc(bytes);

	if (!file)
		return ls_fail(LS_EMEMORY, "%s: no memory for a picture of %d x %d pixels", path, shape.height,
			       shape.width);
	int is_made = png_image_write_to_memory(&png, file, &bytes, 0, pixels, 0, NULL);
	ls_status status = is_made ? ls_file_put(path, file, bytes) : ls_fail(LS_EIO, "%s: %s", path, png.message);
	free(file);
	return status;
}

#else

ls_status ls_png_write(const char *path, const uint8_t *pixels, ls_image_shape shape)
{
	(void)pixels;
	(void)shape;
	return ls_fail(LS_EUNSUPPORTED, "cannot write %s: this build of Lockstep was made without libpng", path);
}

#endif
