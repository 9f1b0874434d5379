/*
 * npy.h - NumPy's .npy format: arrays of numbers, and images in them.
 *
 * A file is "\x93NUMPY", a version, the length of a header, the header, which is a Python dictionary with the type of
 * the elements, their order and the shape, and then the elements. Files come from outside: every field is checked, and
 * nothing of the dictionary is evaluated. What is read: integers, truth values, float32 and float64 in little-endian
 * and C order.
 */
#ifndef LS_DATA_READERS_NPY_H
#define LS_DATA_READERS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_NPY_RANK_MAX = 8 };

/* Most bytes that the beginning of a file, up to its elements, may have. */
#define LS_NPY_HEADER_MAX ((size_t)1 << 16)

typedef struct ls_npy {
	char kind; /* 'u', 'i', 'f', as NumPy has them; 'b': truth values */
	int width; /* bytes of an element */
	int rank;
	uint64_t dims[LS_NPY_RANK_MAX];
	uint64_t elements;   /* product of dims */
	size_t header_bytes; /* where the elements begin */
	const uint8_t *data; /* (elements, width), of any alignment; NULL: header alone */
} ls_npy;

/* By its first bytes; 6 are enough. */
int ls_npy_is(const uint8_t *bytes, size_t size);

/* How many bytes there are before the elements, from the first 12 of a file; `name` is for errors. */
ls_status ls_npy_begin(size_t *header_bytes, const uint8_t *data, size_t bytes, const char *name);
/* The header alone: `bytes` must hold it whole. */
ls_status ls_npy_header(ls_npy *out, const uint8_t *data, size_t bytes, const char *name);
/* A whole file in memory; out->data points into it. */
ls_status ls_npy_parse(ls_npy *out, const uint8_t *data, size_t bytes, const char *name);

/* Integer i of an array of integers. */
int64_t ls_npy_integer(const ls_npy *npy, uint64_t i);

/* An array as images: (N, H, W), (N, C, H, W), or (N, H, W, C) where the last dimension is at
 * most 4 and the second is not. */
typedef struct ls_npy_images {
	uint64_t samples;
	int channels, height, width;
	int is_channels_last;
	int is_float;     /* else integers from 0 to 255 */
	size_t row_bytes; /* of an image in the file */
	char kind;        /* of the array */
	int element;      /* bytes of an element */
} ls_npy_images;
ls_status ls_npy_as_images(ls_npy_images *out, const ls_npy *npy, const char *name);

/* (N) or (N, 1) integers. */
ls_status ls_npy_expect_labels(const ls_npy *npy, const char *name);

/* One image, row_bytes at `row`, to (C, H, W). Of integers bytes are made, all of which must be 0 to 255; of floats
 * floats, which must be finite. `name` and `index` are for errors. */
ls_status ls_npy_to_bytes(const ls_npy_images *images, const uint8_t *row, uint64_t index, const char *name,
			  uint8_t *out);
ls_status ls_npy_to_floats(const ls_npy_images *images, const uint8_t *row, uint64_t index, const char *name,
			   float *out);

#endif
