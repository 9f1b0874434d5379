/*
 * mix.c - two samples become one, and their targets with them.
 *
 *     mixup    out = l image + (1 - l) other                    Zhang et al. 2017
 *     cutmix   a rectangle of 1 - l of the image is the other's  Yun et al. 2019; l is then what is left after clipping
 *
 * l is drawn from Beta(alpha, alpha) for every sample. As in torchvision the rectangle has the image's shape, its
 * centre is anywhere, and what is outside the image is cut off.
 */
#include <string.h>

#include "base/exact_math.h"
#include "data/transforms/image_ops.h"

/* Uniform in (0, 1). */
static double draw_unit(ls_sample_rng *draw)
{
	return ((double)ls_sample_rng_word(draw) + 0.5) * 0x1p-32;
}

/* From 1 on, where the density (4 x (1 - x))^(alpha - 1) has its peak of 1 in the middle: x uniform, kept with that
 * probability. */
static double draw_peaked(double alpha, ls_sample_rng *draw)
{
	for (;;) {
		double x = draw_unit(draw), keep = draw_unit(draw);
		if (keep < ls_exact_exp((alpha - 1) * ls_exact_log(4 * x * (1 - x))))
			return x;
	}
}

/* Below 1, by Johnk: u^(1/alpha) / (u^(1/alpha) + v^(1/alpha)) where the sum is at most 1; written so that powers that
 * are too small for a double do no harm. */
static double draw_valley(double alpha, ls_sample_rng *draw)
{
	for (;;) {
		double u = ls_exact_log(draw_unit(draw)) / alpha, v = ls_exact_log(draw_unit(draw)) / alpha;
		if (ls_exact_exp(u) + ls_exact_exp(v) <= 1)
			return 1 / (1 + ls_exact_exp(v - u));
	}
}

double ls_draw_beta(double alpha, ls_sample_rng *draw)
{
	return alpha < 1 ? draw_valley(alpha, draw) : draw_peaked(alpha, draw);
}

float ls_transform_mixup(const ls_transform_image *image, const float *other, const double *numbers,
			 ls_sample_rng *draw)
{
	size_t values = (size_t)image->channels * ls_image_plane(image);
	float own = (float)ls_draw_beta(numbers[0], draw), rest = 1.0f - own;

	for (size_t i = 0; i < values; i++)
		image->values[i] = own * image->values[i] + rest * other[i];
	return own;
}

/* The part of a line of `side` pixels that lies within `half` of `centre`. */
static void clip(int centre, int half, int side, int *begin, int *end)
{
	*begin = centre > half ? centre - half : 0;
	*end = centre + half < side ? centre + half : side;
}

float ls_transform_cutmix(const ls_transform_image *image, const float *other, const double *numbers,
			  ls_sample_rng *draw)
{
	int height = image->height, width = image->width, top, bottom, left, right;
	double half = 0.5 * sqrt(1 - ls_draw_beta(numbers[0], draw));
	int y = (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)height);
	int x = (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)width);

	clip(y, (int)(half * height), height, &top, &bottom);
	clip(x, (int)(half * width), width, &left, &right);
	for (int c = 0; c < image->channels; c++)
		for (int row = top; row < bottom; row++) {
			size_t at = (size_t)c * ls_image_plane(image) + (size_t)row * (size_t)width + (size_t)left;
			memcpy(image->values + at, other + at, (size_t)(right - left) * sizeof(*other));
		}
	return 1.0f - (float)(bottom - top) * (float)(right - left) / ((float)height * (float)width);
}
