/*
 * bigmnist.c - MNIST made as large as wanted, by index, without storing it.
 *
 * Sample i is MNIST's training image i mod 60,000: as it is for i < 60,000, else under the distortion drawn from
 * (seed, i), the transform `distort`. The test set is MNIST's own.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "data/transforms/distort.h"

#define BIGMNIST_SAMPLES 72000000

enum { SIDE = 28, SCRATCH = 2048 };

typedef struct bigmnist {
	ls_dataset *source;
	uint64_t seed;
} bigmnist;

static void bigmnist_free(void *self)
{
	bigmnist *big = self;
	ls_dataset_free(big->source);
	free(big);
}

/* Transforms are for floats: those of bytes are exact, and the result is rounded to the nearest byte. */
static void distort(uint64_t seed, uint64_t index, uint8_t *image)
{
	static const float black[] = { 0 }, white[] = { 255 };
	static const double as_it_is[] = { 1 };
	float values[SIDE * SIDE], scratch[SCRATCH];
	const ls_transform_image on = { .values = values,
					.channels = 1,
					.height = SIDE,
					.width = SIDE,
					.black = black,
					.white = white,
					.scratch = scratch };
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(seed, LS_RNG_AUGMENT, 0), index);

	assert(ls_transform_scratch(1, SIDE, SIDE) <= SCRATCH);
	for (int i = 0; i < SIDE * SIDE; i++)
		values[i] = image[i];
	ls_transform_distort(&on, as_it_is, &draw);
	for (int i = 0; i < SIDE * SIDE; i++)
		image[i] = (uint8_t)(values[i] + 0.5f);
}

static ls_status bigmnist_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	const bigmnist *big = self;
	uint64_t originals = big->source->info.samples;
	if (index < originals)
		return ls_dataset_read_bytes(big->source, index, image, label);
	LS_TRY(ls_dataset_read_bytes(big->source, index % originals, image, label));
	distort(big->seed, index, image);
	return LS_OK;
}

static ls_status bigmnist_check(void *self)
{
	const bigmnist *big = self;
	return ls_dataset_check(big->source);
}

static ls_status open_train(ls_dataset **out, const ls_dataset_options *options)
{
	ls_dataset_options source = *options;
	source.samples = 0;
	bigmnist *big = calloc(1, sizeof(*big));
	if (!big)
		return ls_fail(LS_EMEMORY, "no memory for dataset 'bigmnist'");
	big->seed = options->seed;
	ls_status status = ls_mnist_open(&big->source, &source); /* which checks that images are 1 x 28 x 28 */
	if (!status) {
		ls_dataset_info info = *ls_dataset_describe(big->source);
		info.samples = options->samples ? options->samples : BIGMNIST_SAMPLES;
		status = ls_dataset_new_bytes(out, &info, &ls_mnist_normalisation, bigmnist_read, bigmnist_free, big);
	}
	if (status)
		bigmnist_free(big);
	else
		(*out)->check = bigmnist_check;
	return status;
}

ls_status ls_bigmnist_open(ls_dataset **out, const ls_dataset_options *options)
{
	return options->split == LS_SPLIT_TRAIN ? open_train(out, options) : ls_mnist_open(out, options);
}
