/*
 * augment.h - an image under random distortions, in one resampling.
 *
 * Rotation, shear, scaling, translation and flips make one affine map; a smooth displacement field is added to it
 * (elastic deformation); the source is read through the sum with bilinear interpolation. The draws depend on (seed,
 * index) alone, and the result has the same bytes on every machine.
 *
 * A flipped digit is often not a digit any more, or another one: flips harm what is learned from digits. The published
 * description of bigMNIST has them, so they are here, with a probability low enough (1/50 each) to do little harm.
 */
#ifndef LS_DATA_AUGMENT_H
#define LS_DATA_AUGMENT_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_augment_options {
	float turn;            /* rotation within +-turn, in turns (1 = a full circle) */
	float shear;           /* x += s y, s within +-shear; and for y within +-shear / 2 */
	float scale;           /* each axis within 1 +- scale */
	float shift;           /* translation within +-shift of the size */
	float flip_horizontal; /* probabilities */
	float flip_vertical;
	float elastic; /* displacement of a field node within +-elastic of the size */
} ls_augment_options;

#define LS_AUGMENT_OPTIONS_INIT                                                                                        \
	{                                                                                                              \
		.turn = 0.05f, .shear = 0.2f, .scale = 0.15f, .shift = 0.07f, .flip_horizontal = 0.02f,                \
		.flip_vertical = 0.02f, .elastic = 0.07f                                                               \
	}

typedef struct ls_augment ls_augment;

ls_status ls_augment_new(ls_augment **out, int channels, int height, int width, const ls_augment_options *options);
void ls_augment_free(ls_augment *augment);

/* out (c, h, w) = the distortion (seed, index) of in (c, h, w); they must not overlap. Safe from several threads. */
void ls_augment_apply(const ls_augment *augment, uint64_t seed, uint64_t index, const uint8_t *in, uint8_t *out);

#endif
