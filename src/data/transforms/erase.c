/*
 * erase.c - a rectangle of 2 to 33 % of the image, of an aspect ratio from 1:3 to 3:1, becomes zero, the mean (random
 * erasing, Zhong et al. 2017). Where a drawn rectangle does not fit, it is cut off at the border.
 */
#include <math.h>

#include "data/transforms/transforms.h"

/* A side of the rectangle, at least one pixel. */
static int side_of(float length, int most)
{
	int side = (int)(length + 0.5f);
	return side < 1 ? 1 : side > most ? most : side;
}

void ls_transform_erase(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	int height = image->height, width = image->width;
	float chance = ls_sample_rng_range(draw, 0, 1), part = ls_sample_rng_range(draw, 0.02f, 0.33f);
	float stretch = ls_sample_rng_range(draw, 1, 3); /* long side by short side */
	int is_tall = ls_sample_rng_word(draw) & 1;
	float area = part * (float)height * (float)width, ratio = is_tall ? stretch : 1 / stretch;
	int rows = side_of(sqrtf(area * ratio), height), columns = side_of(sqrtf(area / ratio), width);
	int top = (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)(height - rows + 1));
	int left = (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)(width - columns + 1));

	if (!(chance < (float)numbers[0]))
		return;
	for (int c = 0; c < image->channels; c++)
		for (int y = top; y < top + rows; y++)
			for (int x = left; x < left + columns; x++)
				image->values[((size_t)c * (size_t)height + (size_t)y) * (size_t)width + (size_t)x] = 0;
}
