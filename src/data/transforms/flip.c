/*
 * flip.c - mirrored images.
 */
#include "data/transforms/image_ops.h"

static void swap(float *a, float *b)
{
	float kept = *a;
	*a = *b;
	*b = kept;
}

void ls_transform_flip(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	size_t rows = (size_t)image->channels * (size_t)image->height;

	if (!ls_transform_happens(draw, numbers[0]))
		return;
	for (size_t y = 0; y < rows; y++) {
		float *row = image->values + y * (size_t)image->width;
		for (int x = 0; x < image->width / 2; x++)
			swap(&row[x], &row[image->width - 1 - x]);
	}
}

void ls_transform_vertical_flip(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	size_t width = (size_t)image->width, plane = width * (size_t)image->height;

	if (!ls_transform_happens(draw, numbers[0]))
		return;
	for (int c = 0; c < image->channels; c++)
		for (int y = 0; y < image->height / 2; y++)
			for (size_t x = 0; x < width; x++)
				swap(&image->values[(size_t)c * plane + (size_t)y * width + x],
				     &image->values[(size_t)c * plane + (size_t)(image->height - 1 - y) * width + x]);
}
