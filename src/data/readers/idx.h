/*
 * idx.h - the IDX format of MNIST, plain or gzip.
 *
 * A file is 00 00, a type byte (08: unsigned byte, the only one of images; of labels also 0b: short and 0c: int,
 * signed), the number of dimensions, each dimension as a big-endian u32, then the elements, big-endian, last dimension
 * fastest. Files come from outside: every field is checked.
 */
#ifndef LS_DATA_READERS_IDX_H
#define LS_DATA_READERS_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "base/status.h"

#define LS_IDX_RANK_MAX 4
#define LS_IDX_HEADER_MAX (4 + 4 * LS_IDX_RANK_MAX)

typedef struct ls_idx {
	int rank; /* 1: labels (n); 3: images (n, h, w); 4: images (n, c, h, w) */
	uint32_t dims[LS_IDX_RANK_MAX];
	uint64_t elements;   /* product of dims */
	int width;           /* bytes of an element: 1, or 2 or 4 of labels */
	const uint8_t *data; /* (elements, width) */
} ls_idx;

/* Header alone: `bytes` must hold at least the header. *header_bytes is where the elements begin. `name` is for errors.
 */
ls_status ls_idx_header(ls_idx *out, const uint8_t *data, size_t bytes, const char *name, size_t *header_bytes);

/* A whole plain file in memory; out->data points into it. */
ls_status ls_idx_parse(ls_idx *out, const uint8_t *data, size_t bytes, const char *name);

/* An open file. A large plain one is mapped and not copied; a .gz is inflated once. */
typedef struct ls_idx_file {
	ls_idx idx;
	ls_file_map map;
	void *inflated; /* NULL when plain */
	size_t inflated_bytes;
} ls_idx_file;

ls_status ls_idx_open(ls_idx_file *file, const char *path);
/* Read only the header of a file, plain or gzip (data is NULL): cheap, whatever size it declares. */
ls_status ls_idx_peek(ls_idx *out, const char *path);
void ls_idx_close(ls_idx_file *file); /* harmless on a zeroed or closed one */

/* The same from bytes the caller keeps, plain or gzip by their first bytes. */
ls_status ls_idx_load(ls_idx_file *file, const uint8_t *data, size_t bytes, const char *name);

/* Check the kind of file; the error says what it is instead. */
ls_status ls_idx_expect_images(const ls_idx *idx, const char *name);
ls_status ls_idx_expect_labels(const ls_idx *idx, const char *name);

/* Label i. */
int32_t ls_idx_label(const ls_idx *labels, uint64_t i);

/* Encode a header; returns its length. */
size_t ls_idx_encode(uint8_t header[LS_IDX_HEADER_MAX], int rank, const uint32_t *dims);

#endif
