/*
 * warp.h - an image read through a map from its pixels to places of the source: bilinear, black
 * outside, half way at the border.
 */
#ifndef LS_DATA_TRANSFORMS_WARP_H
#define LS_DATA_TRANSFORMS_WARP_H

#include "data/transforms/transforms.h"

/* Nodes per side of a field of displacements. */
enum { LS_WARP_GRID = 8 };

/* source = m (x, y) + offset + field(x, y), in pixels; [0] is x and [1] is y. */
typedef struct ls_warp {
	float m[2][2], offset[2];
	const float (*field)[LS_WARP_GRID][2]; /* (GRID, GRID, 2) displacements, spread over the image; NULL: none */
} ls_warp;

void ls_warp_image(const ls_transform_image *image, const ls_warp *warp);

/* The offset with which m turns the image around (x, y). */
void ls_warp_centre(ls_warp *warp, float x, float y);

#endif
