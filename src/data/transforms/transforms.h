/*
 * transforms.h - random changes of training images, a different one each time a sample is seen: `--augment
 * crop:4,flip`.
 *
 * A transform is a function in a file here and a row of table.c. Images are changed in place, (channels, height, width)
 * normalised floats, by the loader's threads. What is drawn depends on (seed, epoch, sample, place in the list) alone,
 * so the trained bits do not depend on which thread, device or node reads a sample, nor on a stop and resume. Nor do
 * they depend on compiler and processor: operations that IEEE 754 rounds exactly, in the order in which they are
 * written (the tree is compiled without contraction), and no function of libm but those that are exact (sqrt, floor).
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
	float *scratch; /* ls_transform_scratch() floats for a transform's own use; their values are not kept */
} ls_transform_image;

/* Floats of scratch memory for an image. */
size_t ls_transform_scratch(int channels, int height, int width);

/* A number behind a colon. */
typedef struct ls_transform_number {
	const char *name;
	double usual, low, high;
	int is_whole;
} ls_transform_number;

/* What a transform needs of the images. */
enum {
	LS_NEEDS_PIXEL_RANGE = 1, /* black and white are known: images of bytes */
	LS_NEEDS_COLOUR = 2       /* three channels: red, green, blue */
};

enum { LS_TRANSFORM_NUMBERS = 4 };

typedef struct ls_transform {
	const char *name, *summary;
	ls_transform_number numbers[LS_TRANSFORM_NUMBERS]; /* a name of NULL ends them */
	int needs;
	void (*apply)(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
	ls_status (*check)(const double *numbers, const ls_dataset_info *info); /* optional: what a range cannot say */
	/* Instead of apply, of what mixes the image with another: returns how much of the result is the image. */
	float (*mix)(const ls_transform_image *image, const float *other, const double *numbers, ls_sample_rng *draw);
} ls_transform;

/* table.c: row i, NULL past the end. */
const ls_transform *ls_transform_at(size_t i);

enum { LS_TRANSFORMS_MAX = 16 };

typedef struct ls_transforms {
	size_t count;
	const ls_transform *row[LS_TRANSFORMS_MAX];
	double numbers[LS_TRANSFORMS_MAX][LS_TRANSFORM_NUMBERS];
	uint64_t seed;
	int channels, height, width, targets; /* of a sample; targets: floats where samples are mixed */
	float *black, *white;                 /* (channels) */
} ls_transforms;

/* "crop:4,flip" for the images of a dataset; NULL and "none" are no transforms. Text is refused. */
ls_status ls_transforms_init(ls_transforms *out, const char *list, const ls_dataset *dataset, uint64_t seed);
/* Whether a list is one, for images that are not known yet. */
ls_status ls_transforms_check(const char *list);
void ls_transforms_release(ls_transforms *transforms); /* harmless when it is zero */

/* Whether samples are mixed: their targets must then be floats. */
int ls_transforms_mix(const ls_transforms *transforms);

/*
 * Change sample `index` of an epoch, which was read; scratch: ls_transforms_scratch() floats, one thread at a
 * time. What mixes samples reads another one of the dataset, drawn by (seed, epoch, index) as everything is,
 * changes it as that sample is changed in this epoch, and mixes the targets, (info.targets, or classes of
 * one-hot targets); NULL: none.
 */
ls_status ls_transforms_apply(const ls_transforms *transforms, const ls_dataset *dataset, uint64_t epoch,
			      uint64_t index, float *image, float *targets, float *scratch);
size_t ls_transforms_scratch(const ls_transforms *transforms);

/* The rows' functions. */
void ls_transform_flip(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_vertical_flip(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_crop(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
ls_status ls_transform_crop_check(const double *numbers, const ls_dataset_info *info);
void ls_transform_resized_crop(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
ls_status ls_transform_resized_crop_check(const double *numbers, const ls_dataset_info *info);
void ls_transform_rotate(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_shear(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_translate(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_distort(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_elastic(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_erase(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_brightness(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_contrast(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_saturation(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_hue(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_jitter(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_sharpness(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_autocontrast(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_equalize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_invert(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_posterize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_solarize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
void ls_transform_randaugment(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw);
float ls_transform_mixup(const ls_transform_image *image, const float *other, const double *numbers,
			 ls_sample_rng *draw);
float ls_transform_cutmix(const ls_transform_image *image, const float *other, const double *numbers,
			  ls_sample_rng *draw);
double ls_draw_beta(double alpha, ls_sample_rng *draw); /* of Beta(alpha, alpha) */

#endif
