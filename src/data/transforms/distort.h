/*
 * distort.h - an image under random distortions, in one resampling: bigMNIST is made with them.
 *
 * Rotation, shear, scaling, translation and flips make one affine map; a smooth displacement field is added to it
 * (elastic deformation); the source is read through the sum with bilinear interpolation.
 *
 * A flipped digit is often not a digit any more, or another one: flips harm what is learned from digits. The published
 * description of bigMNIST has them, so they are here, with a probability low enough (1/50 each) to do little harm.
 */
#ifndef LS_DATA_TRANSFORMS_DISTORT_H
#define LS_DATA_TRANSFORMS_DISTORT_H

#include "data/transforms/transforms.h"

typedef struct ls_distortion {
	float turn;            /* rotation within +-turn, in turns (1 = a full circle) */
	float shear;           /* x += s y, s within +-shear; and for y within +-shear / 2 */
	float scale;           /* each axis within 1 +- scale */
	float shift;           /* translation within +-shift of the size */
	float flip_horizontal; /* probabilities */
	float flip_vertical;
	float elastic; /* displacement of a field node within +-elastic of the size */
} ls_distortion;

/* bigMNIST's. */
#define LS_DISTORTION_INIT                                                                                             \
	{                                                                                                              \
		.turn = 0.05f, .shear = 0.2f, .scale = 0.15f, .shift = 0.07f, .flip_horizontal = 0.02f,                \
		.flip_vertical = 0.02f, .elastic = 0.07f                                                               \
	}

void ls_distort(const ls_transform_image *image, const ls_distortion *how, ls_sample_rng *draw);

#endif
