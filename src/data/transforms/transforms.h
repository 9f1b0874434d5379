/*
 * transforms.h - random changes of training images, a different one each time a sample is seen: `--augment crop:4,flip`.
 *
 * A transform is a file and a row of table.c. Images are changed in place, (channels, height, width) normalised floats,
 * by the loader's threads. What is drawn depends on (seed, epoch, sample, place in the list) alone, so the trained bits do
 * not depend on which thread, device or node reads a sample, nor on a stop and resume.
 */
#ifndef LS_DATA_TRANSFORMS_TRANSFORMS_H
#define LS_DATA_TRANSFORMS_TRANSFORMS_H

#include <lockstep/data.h>

#include "data/sample_rng.h"

/* What a transform works on. */
typedef struct ls_transform_image {
	float *values; /* (channels, height, width) */
	int channels, height, width;
	const float *black, *white; /* (channels) the normalised values of the bytes 0 and 255 */
} ls_transform_image;

typedef struct ls_transform {
	const char *name, *summary;
	const char *amount; /* what the number behind the colon is */
	double usual, low, high;
	int is_whole;          /* the number is whole */
	int needs_pixel_range; /* black and white must be known: images of bytes */
	void (*apply)(const ls_transform_image *image, double amount, ls_sample_rng *draw);
} ls_transform;

/* table.c: row i, NULL past the end. */
const ls_transform *ls_transform_at(size_t i);

enum { LS_TRANSFORMS_MAX = 16 };

typedef struct ls_transforms {
	size_t count;
	const ls_transform *row[LS_TRANSFORMS_MAX];
	double amount[LS_TRANSFORMS_MAX];
	uint64_t seed;
	int channels, height, width;
	float *black, *white; /* (channels) */
} ls_transforms;

/* "crop:4,flip" for the images of a dataset; NULL and "none" are no transforms. Text is refused. */
ls_status ls_transforms_init(ls_transforms *out, const char *list, const ls_dataset *dataset, uint64_t seed);
void ls_transforms_release(ls_transforms *transforms); /* harmless when it is zero */

/* Change sample `index` of an epoch. */
void ls_transforms_apply(const ls_transforms *transforms, uint64_t epoch, uint64_t index, float *image);

/* The rows' functions. */
void ls_transform_flip(const ls_transform_image *image, double amount, ls_sample_rng *draw);
void ls_transform_vertical_flip(const ls_transform_image *image, double amount, ls_sample_rng *draw);
void ls_transform_crop(const ls_transform_image *image, double amount, ls_sample_rng *draw);
void ls_transform_erase(const ls_transform_image *image, double amount, ls_sample_rng *draw);
void ls_transform_brightness(const ls_transform_image *image, double amount, ls_sample_rng *draw);
void ls_transform_contrast(const ls_transform_image *image, double amount, ls_sample_rng *draw);

#endif
