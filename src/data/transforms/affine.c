/*
 * affine.c - rotation, shear and translation.
 *
 *     rotate      by an angle around the centre, uniform within +-degrees
 *     shear       source = (x + s y, y + t x) from the centre on, s and t uniform within +-amount
 *     translate   by whole pixels, uniform within +-amount of height and width
 *
 * With x to the right and y downwards, source = (cos x - sin y, sin x + cos y) turns the image counter-clockwise.
 */
#include "data/transforms/image_ops.h"
#include "data/transforms/warp.h"

static float centre_of(int side)
{
	return 0.5f * ((float)side - 1.0f);
}

void ls_image_rotate(const ls_transform_image *image, float degrees)
{
	float sine, cosine;
	ls_warp warp = { .field = NULL };

	ls_sine_cosine(degrees / 360.0f, &sine, &cosine);
	warp.m[0][0] = warp.m[1][1] = cosine;
	warp.m[0][1] = -sine;
	warp.m[1][0] = sine;
	ls_warp_centre(&warp, centre_of(image->width), centre_of(image->height));
	ls_warp_image(image, &warp);
}

void ls_image_shear(const ls_transform_image *image, float x, float y, int at_centre)
{
	ls_warp warp = { .m = { { 1, x }, { y, 1 } } };

	if (at_centre)
		ls_warp_centre(&warp, centre_of(image->width), centre_of(image->height));
	else
		ls_warp_centre(&warp, -0.5f, -0.5f); /* the corner of the first pixel */
	ls_warp_image(image, &warp);
}

void ls_transform_rotate(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_image_rotate(image, ls_sample_rng_range(draw, -(float)numbers[0], (float)numbers[0]));
}

void ls_transform_shear(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	float bound = (float)numbers[0];
	float x = ls_sample_rng_range(draw, -bound, bound), y = ls_sample_rng_range(draw, -bound, bound);

	ls_image_shear(image, x, y, 1);
}

/* A shift within +-part of a side, to the nearest whole pixel. */
static int draw_shift(ls_sample_rng *draw, double part, int side)
{
	float bound = (float)part * (float)side;
	float shift = ls_sample_rng_range(draw, -bound, bound);

	return shift < 0 ? -(int)(0.5f - shift) : (int)(shift + 0.5f);
}

void ls_transform_translate(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	int dy = draw_shift(draw, numbers[0], image->height), dx = draw_shift(draw, numbers[0], image->width);

	ls_image_move(image, dy, dx);
}
