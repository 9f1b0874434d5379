/*
 * fixture.h - small files for the data tests, in a directory that goes away.
 */
#ifndef LS_TEST_DATA_FIXTURE_H
#define LS_TEST_DATA_FIXTURE_H

#include <lockstep/data.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/readers/idx.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"

/* A directory of the test's own, removed by temp_dir_remove(). */
__attribute__((unused)) static int fixture_enter(void **state)
{
	ls_log_set_level(LS_LOG_ERROR);
	return temp_dir_make(state);
}

/* Files whose names match a shell pattern. */
__attribute__((unused)) static size_t count_matches(const char *pattern)
{
	glob_t found = { 0 };
	int status = glob(pattern, 0, NULL, &found);
	assert_true(status == 0 || status == GLOB_NOMATCH);
	size_t count = status == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return count;
}

/* gzip of data, malloc'd. */
__attribute__((unused)) static uint8_t *gzip_bytes(const void *data, size_t bytes, size_t *out_bytes)
{
	z_stream stream = { 0 };
	size_t room = bytes + bytes / 100 + 1024;
	uint8_t *out = malloc(room);
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (Bytef *)(uintptr_t)data;
	stream.avail_in = (uInt)bytes;
	stream.next_out = out;
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	*out_bytes = stream.total_out;
	deflateEnd(&stream);
	return out;
}

/* An IDX file's bytes, malloc'd: element i is fill(i). */
__attribute__((unused)) static uint8_t *idx_bytes(int rank, const uint32_t *dims, uint8_t (*fill)(size_t i),
						  size_t *bytes)
{
	uint8_t header[LS_IDX_HEADER_MAX];
	size_t head = ls_idx_encode(header, rank, dims), elements = 1;
	for (int i = 0; i < rank; i++)
		elements *= dims[i];
	uint8_t *out = malloc(head + elements);
	memcpy(out, header, head);
	for (size_t i = 0; i < elements; i++)
		out[head + i] = fill(i);
	*bytes = head + elements;
	return out;
}

__attribute__((unused)) static void put_idx(const char *path, int rank, const uint32_t *dims, uint8_t (*fill)(size_t i),
					    int gz)
{
	size_t bytes, packed_bytes;
	uint8_t *plain = idx_bytes(rank, dims, fill, &bytes);
	if (gz) {
		uint8_t *packed = gzip_bytes(plain, bytes, &packed_bytes);
		put_file(path, packed, packed_bytes);
		free(packed);
	} else {
		put_file(path, plain, bytes);
	}
	free(plain);
}

__attribute__((unused)) static uint8_t fill_pixels(size_t i)
{
	return (uint8_t)ls_mix64(i);
}
__attribute__((unused)) static uint8_t fill_digits(size_t i)
{
	return (uint8_t)(i % 10);
}

/* A little dataset of n training and m test images with MNIST's names and size. */
__attribute__((unused)) static void put_mnist(const char *dir, uint32_t n, uint32_t m)
{
	put_idx(in_dir(dir, "train-images-idx3-ubyte"), 3, (uint32_t[]){ n, 28, 28 }, fill_pixels, 0);
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ n }, fill_digits, 0);
	put_idx(in_dir(dir, "t10k-images-idx3-ubyte"), 3, (uint32_t[]){ m, 28, 28 }, fill_pixels, 0);
	put_idx(in_dir(dir, "t10k-labels-idx1-ubyte"), 1, (uint32_t[]){ m }, fill_digits, 0);
}

static inline ls_status open_set(ls_dataset **out, const char *name, const char *dir, ls_split split, uint64_t samples)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = name;
	options.dir = dir;
	options.split = split;
	options.samples = samples;
	return ls_dataset_open(out, &options);
}

#endif
