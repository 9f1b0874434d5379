/*
 * image_ops.h - what transforms do to an image once their numbers are drawn, each as torchvision.transforms.functional
 * has it, on pixels that are not rounded to bytes in between.
 */
#ifndef LS_DATA_TRANSFORMS_IMAGE_OPS_H
#define LS_DATA_TRANSFORMS_IMAGE_OPS_H

#include "data/transforms/transforms.h"

/* crop.c: out(y, x) = in(y + dy, x + dx), black outside; less than the image's size each way. */
void ls_image_move(const ls_transform_image *image, int dy, int dx);

/* resized_crop.c: the part of `rows` x `columns` pixels from (top, left) on, scaled to the whole image, bilinear. */
void ls_image_enlarge(const ls_transform_image *image, int top, int left, int rows, int columns);

/* affine.c: bilinear, black outside. */
void ls_image_rotate(const ls_transform_image *image, float degrees);                  /* counter-clockwise */
void ls_image_shear(const ls_transform_image *image, float x, float y, int at_centre); /* slopes; else at the corner */

/* colour.c. Hue and saturation change nothing but images of three channels. */
void ls_image_brightness(const ls_transform_image *image, float factor);
void ls_image_contrast(const ls_transform_image *image, float factor);
void ls_image_saturation(const ls_transform_image *image, float factor);
void ls_image_hue(const ls_transform_image *image, float turns); /* within +-0.5 */

/* tones.c. Equalize, posterize and solarize go by the nearest byte of a pixel. */
void ls_image_autocontrast(const ls_transform_image *image);
void ls_image_equalize(const ls_transform_image *image);
void ls_image_invert(const ls_transform_image *image);
void ls_image_posterize(const ls_transform_image *image, int bits);
void ls_image_solarize(const ls_transform_image *image, float threshold); /* 0 to 255 */

/* sharpness.c */
void ls_image_sharpness(const ls_transform_image *image, float factor);

static inline float ls_limit(float value, float low, float high)
{
	float above = value < low ? low : value;
	return above > high ? high : above;
}

static inline size_t ls_image_plane(const ls_transform_image *image)
{
	return (size_t)image->height * (size_t)image->width;
}

/* Whether a transform that happens with a probability happens. */
static inline int ls_transform_happens(ls_sample_rng *draw, double probability)
{
	return ls_sample_rng_range(draw, 0, 1) < (float)probability;
}

#endif
