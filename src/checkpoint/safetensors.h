/*
 * safetensors.h - the safetensors file format, read and written.
 *
 * File: u64 little-endian header length n, n bytes of JSON {"name": {"dtype","shape","data_offsets"}, "__metadata__":
 * {text: text}}, then the data. A file is from outside: every length, offset, overlap, gap, type and name is checked
 * before use.
 */
#ifndef LS_CHECKPOINT_SAFETENSORS_H
#define LS_CHECKPOINT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "base/status.h"

typedef enum ls_dtype { LS_F32, LS_F64, LS_F16, LS_BF16, LS_I64, LS_I32, LS_U8, LS_DTYPE_COUNT } ls_dtype;
size_t ls_dtype_bytes(ls_dtype dtype);
const char *ls_dtype_name(ls_dtype dtype); /* "F32" */

#define LS_ST_RANK_MAX 8

typedef struct ls_st_tensor {
	const char *name;
	ls_dtype dtype;
	int rank;
	int64_t shape[LS_ST_RANK_MAX];
	const void *data; /* reader: into the map, any alignment */
	size_t bytes;
} ls_st_tensor;

typedef struct ls_st_reader ls_st_reader;

ls_status ls_st_open(ls_st_reader **out, const char *path);
/* The same on bytes in memory (fuzzing, tests); they must outlive the reader. `label` names them in errors. */
ls_status ls_st_open_bytes(ls_st_reader **out, const void *data, size_t bytes, const char *label);
void ls_st_close(ls_st_reader *reader);
/* Use data only if this returns LS_OK after reading it: another process may cut the file short meanwhile. */
ls_status ls_st_check(const ls_st_reader *reader);
size_t ls_st_count(const ls_st_reader *reader);
const ls_st_tensor *ls_st_at(const ls_st_reader *reader, size_t i);
const ls_st_tensor *ls_st_find(const ls_st_reader *reader, const char *name); /* NULL: not there */
const char *ls_st_metadata(const ls_st_reader *reader, const char *key);      /* NULL: not there */
/* Convert any float dtype to float; fails on integer tensors. */
ls_status ls_st_to_float(const ls_st_tensor *tensor, float *out);

typedef struct ls_st_pair {
	const char *key, *value;
} ls_st_pair;

/* Write `count` tensors; data comes from `fill`, one tensor at a time, into a buffer of its size. The file is published
 * atomically. `checksum` (may be NULL) receives the xxh64 of the whole file. */
typedef ls_status (*ls_st_fill)(void *context, size_t i, void *data);
ls_status ls_st_write(const char *path, const ls_st_tensor *tensors, size_t count, const ls_st_pair *metadata,
		      size_t pairs, ls_st_fill fill, void *context, uint64_t *checksum);

#endif
