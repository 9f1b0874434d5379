/*
 * randaugment.c - RandAugment (Cubuk et al. 2019), with torchvision's list of changes and its 31 magnitudes: N changes,
 * drawn with equal probabilities, each of magnitude M of 30, in a random direction where it has two.
 */
#include "data/transforms/image_ops.h"

#define MAGNITUDES 30.0f

/* `part` is M / 30, negative in the other direction. */
static void keep(const ls_transform_image *image, float part)
{
	(void)image;
	(void)part;
}

static void shear_x(const ls_transform_image *image, float part)
{
	ls_image_shear(image, 0.3f * part, 0, 0);
}

static void shear_y(const ls_transform_image *image, float part)
{
	ls_image_shear(image, 0, 0.3f * part, 0);
}

/* Whole pixels, towards 0. */
static int shift_of(float part, int side)
{
	return (int)(part * (150.0f / 331.0f) * (float)side);
}

static void translate_x(const ls_transform_image *image, float part)
{
	ls_image_move(image, 0, -shift_of(part, image->width));
}

static void translate_y(const ls_transform_image *image, float part)
{
	ls_image_move(image, -shift_of(part, image->height), 0);
}

static void rotate(const ls_transform_image *image, float part)
{
	ls_image_rotate(image, 30.0f * part);
}

static void brightness(const ls_transform_image *image, float part)
{
	ls_image_brightness(image, 1.0f + 0.9f * part);
}

static void saturation(const ls_transform_image *image, float part)
{
	ls_image_saturation(image, 1.0f + 0.9f * part);
}

static void contrast(const ls_transform_image *image, float part)
{
	ls_image_contrast(image, 1.0f + 0.9f * part);
}

static void sharpness(const ls_transform_image *image, float part)
{
	ls_image_sharpness(image, 1.0f + 0.9f * part);
}

static void posterize(const ls_transform_image *image, float part)
{
	ls_image_posterize(image, 8 - (int)(4.0f * part + 0.5f));
}

static void solarize(const ls_transform_image *image, float part)
{
	ls_image_solarize(image, 255.0f - 255.0f * part);
}

static void autocontrast(const ls_transform_image *image, float part)
{
	(void)part;
	ls_image_autocontrast(image);
}

static void equalize(const ls_transform_image *image, float part)
{
	(void)part;
	ls_image_equalize(image);
}

static const struct {
	void (*apply)(const ls_transform_image *image, float part);
	int has_directions;
} changes[] = {
	{ keep, 0 },      { shear_x, 1 },    { shear_y, 1 },      { translate_x, 1 }, { translate_y, 1 },
	{ rotate, 1 },    { brightness, 1 }, { saturation, 1 },   { contrast, 1 },    { sharpness, 1 },
	{ posterize, 0 }, { solarize, 0 },   { autocontrast, 0 }, { equalize, 0 },
};

void ls_transform_randaugment(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	float part = (float)numbers[1] / MAGNITUDES;

	for (int i = 0; i < (int)numbers[0]; i++) {
		uint32_t kind = ls_rng_below(ls_sample_rng_word(draw), sizeof(changes) / sizeof(changes[0]));
		int is_reverse = (int)(ls_sample_rng_word(draw) & 1) && changes[kind].has_directions;
		changes[kind].apply(image, is_reverse ? -part : part);
	}
}
