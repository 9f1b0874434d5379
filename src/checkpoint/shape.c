#include "checkpoint/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int ls_shape_bytes(ls_dtype dtype, int rank, const int64_t *shape, size_t *bytes)
{
	int64_t product = (int64_t)ls_dtype_bytes(dtype);
	int empty = 0;
	for (int i = 0; i < rank; i++) {
		if (shape[i] < 0)
			return 0;
		if (shape[i] == 0)
			empty = 1;
		else if (__builtin_mul_overflow(product, shape[i], &product))
			return 0;
	}
	*bytes = empty ? 0 : (size_t)product;
	return 1;
}

const char *ls_shape_text(char *out, size_t size, int rank, const int64_t *shape)
{
	size_t at = (size_t)snprintf(out, size, "(");
	for (int i = 0; i < rank && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", shape[i]);
	if (at < size)
		snprintf(out + at, size - at, ")");
	return out;
}

int ls_shape_equal(int rank, const int64_t *shape, int other_rank, const int64_t *other)
{
	return rank == other_rank && (rank == 0 || memcmp(shape, other, (size_t)rank * sizeof(*shape)) == 0);
}
