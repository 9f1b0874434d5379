/*
 * bigmnist.c - MNIST made as large as wanted, by index, without storing it.
 *
 * Sample i is MNIST's training image i mod 60,000: as it is for i < 60,000, else under the distortion drawn from
 * (seed, i). The test set is MNIST's own.
 */
#include <stdlib.h>

#include "base/status.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/normalise.h"

#define BIGMNIST_SAMPLES 72000000

typedef struct bigmnist {
	ls_dataset *source;
	ls_augment *augment;
	uint64_t seed;
} bigmnist;

static void bigmnist_free(void *self)
{
	bigmnist *big = self;
	ls_augment_free(big->augment);
	ls_dataset_free(big->source);
	free(big);
}

static ls_status bigmnist_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	const bigmnist *big = self;
	uint64_t originals = big->source->info.samples;
	if (index < originals)
		return ls_dataset_read_bytes(big->source, index, image, label);
	uint8_t original[28 * 28];
	LS_TRY(ls_dataset_read_bytes(big->source, index % originals, original, label));
	ls_augment_apply(big->augment, big->seed, index, original, image);
	return LS_OK;
}

static ls_status bigmnist_check(void *self)
{
	const bigmnist *big = self;
	return ls_dataset_check(big->source);
}

static ls_status open_train(ls_dataset **out, const ls_dataset_options *options)
{
	const ls_augment_options distortion = LS_AUGMENT_OPTIONS_INIT;
	ls_dataset_options source = *options;
	source.samples = 0;
	bigmnist *big = calloc(1, sizeof(*big));
	if (!big)
		return ls_fail(LS_EMEMORY, "no memory for dataset 'bigmnist'");
	big->seed = options->seed;
	ls_status status = ls_mnist_open(&big->source, &source); /* which checks that images are 1 x 28 x 28 */
	if (!status)
		status = ls_augment_new(&big->augment, 1, 28, 28, &distortion);
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
