/*
 * shape.h - sizes of tensors, and text about them that is safe to print.
 */
#ifndef LS_CHECKPOINT_SHAPE_H
#define LS_CHECKPOINT_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint/safetensors.h"

/* Largest "(9223372036854775807, ...)" of LS_ST_RANK_MAX sizes. */
#define LS_SHAPE_TEXT 192
/* Names from outside may be long or hold escape sequences for a terminal; errors show this much of them. */
#define LS_NAME_TEXT 128

/* The dtype called `name`, or LS_DTYPE_COUNT. */
ls_dtype ls_dtype_find(const char *name);

/* "F32, F64, ..." */
const char *ls_dtype_known(char *out, size_t size);

/* bytes = dtype size * product of shape. Returns 0 when a size is negative or the product passes INT64_MAX, even where
 * another size is 0. */
int ls_shape_bytes(ls_dtype dtype, int rank, const int64_t *shape, size_t *bytes);

/* "(64, 3, 7, 7)"; "()" for a scalar. Returns `out`. */
const char *ls_shape_text(char *out, size_t size, int rank, const int64_t *shape);

int ls_shape_equal(int rank, const int64_t *shape, int other_rank, const int64_t *other);

#endif
