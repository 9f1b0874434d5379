/*
 * measure.h - mean and deviation of images, measured over them.
 */
#ifndef LS_DATA_MEASURE_H
#define LS_DATA_MEASURE_H

#include "data/dataset.h"

/*
 * Of `samples` images of bytes (samples, channels, positions): sums of bytes are exact, so the result is the same
 * everywhere; it is rounded to four digits, which gives MNIST the constants everybody uses. Above 1 GiB, about 1 GiB of
 * evenly spread images is measured. A deviation below one level of 255 counts as one level: a channel that is constant
 * becomes zeros, not infinities.
 */
ls_status ls_normalisation_measure(ls_normalisation *out, const uint8_t *images, uint64_t samples, int channels,
				   size_t positions);

/* Images that are read one by one: by read_bytes, or, where it is NULL, as floats by read_floats. */
typedef struct ls_image_source {
	int channels;
	size_t positions; /* height * width */
	uint64_t samples;
	ls_bytes_read read_bytes;
	ls_floats_read read_floats;
	void *self;
	int threads;      /* that read bytes at the same time; 0: one */
	const char *slow; /* where images are decoded first: a note names this folder when it takes long; NULL: none */
} ls_image_source;

/* The same for these; bytes give the same constants as above, on any number of threads. Of floats the constants are
 * those of the values as they are; a channel that is constant has deviation 1. Fails as reading does, of several images
 * with the first one. */
ls_status ls_normalisation_measure_source(ls_normalisation *out, const ls_image_source *source);

#endif
