/*
 * sharpness.c - the image between its smoothed self (factor 0), itself (1) and what is beyond.
 *
 *     smooth(y, x) = (5 in(y, x) + the eight around it) / 13      at the border: in(y, x)
 *     out = smooth + factor (in - smooth)
 */
#include <string.h>

#include "data/transforms/image_ops.h"

static void sharpen_row(const float *above, const float *row, const float *below, int width, float factor,
			const float range[2], float *out)
{
	for (int x = 1; x < width - 1; x++) {
		float upper = above[x - 1] + above[x] + above[x + 1], lower = below[x - 1] + below[x] + below[x + 1];
		float smooth = (upper + lower + row[x - 1] + row[x + 1] + 5.0f * row[x]) * (1.0f / 13.0f);
		out[x] = ls_limit(smooth + factor * (row[x] - smooth), range[0], range[1]);
	}
}

void ls_image_sharpness(const ls_transform_image *image, float factor)
{
	size_t plane = ls_image_plane(image), width = (size_t)image->width;

	for (int c = 0; c < image->channels; c++) {
		const float range[] = { image->black[c], image->white[c] };
		float *values = image->values + (size_t)c * plane, *in = image->scratch;
		memcpy(in, values, plane * sizeof(*in));
		for (int y = 1; y < image->height - 1; y++) {
			const float *row = in + (size_t)y * width;
			sharpen_row(row - width, row, row + width, image->width, factor, range,
				    values + (size_t)y * width);
		}
	}
}

void ls_transform_sharpness(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[1]))
		ls_image_sharpness(image, (float)numbers[0]);
}
