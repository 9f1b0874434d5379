/*
 * Any bytes as an image file: refused, or pixels that can be resized to any shape, decoded whole and for that shape.
 * The first two bytes choose the shape.
 */
#include <math.h>

#include "data/images/image.h"
#include "fuzz/common.h"

#define PIXELS_MAX (1 << 18)
enum { SIDE_MAX = 16 };

/* As training decodes it, at a part of its size; and what its first bytes say. */
static void decode_for(const uint8_t *data, size_t size, const ls_image *whole, const ls_image_shape *to)
{
	ls_image image;
	ls_image_shape shape;

	fuzz_require(ls_image_peek(&shape, data, size, "input") == LS_OK);
	fuzz_require(shape.channels == whole->channels && shape.height == whole->height && shape.width == whole->width);
	if (ls_image_decode_for(&image, data, size, "input", PIXELS_MAX, to) != LS_OK)
		return;
	fuzz_require(image.channels == whole->channels && image.height <= whole->height && image.width <= whole->width);
	ls_image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_image image;
	float out[3 * SIDE_MAX * SIDE_MAX];
	if (size < 2)
		return 0;
	ls_image_shape to = { data[0] & 1 ? 3 : 1, 1 + data[0] / 2 % SIDE_MAX, 1 + data[1] % SIDE_MAX };
	if (ls_image_decode(&image, data + 2, size - 2, "input", PIXELS_MAX) != LS_OK)
		return 0;
	fuzz_require((image.channels == 1 || image.channels == 3) && image.height > 0 && image.width > 0);
	fuzz_require((uint64_t)image.height * (uint64_t)image.width <= PIXELS_MAX);
	fuzz_require(ls_image_resize(&image, data[1] >> 7 ? LS_RESIZE_STRETCH : LS_RESIZE_COVER, to, out, "input") ==
		     LS_OK);
	for (int i = 0; i < to.channels * to.height * to.width; i++)
		fuzz_require(out[i] >= 0 && out[i] <= 255.001f);
	decode_for(data + 2, size - 2, &image, &to);
	ls_image_release(&image);
	return 0;
}
