/*
 * array.h - the length of a fixed array, and arrays that grow while they are filled.
 */
#ifndef LS_BASE_ARRAY_H
#define LS_BASE_ARRAY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define LS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Make room for `need` elements in the malloc'd array that *array points to. Capacity grows by half, so that appending
 * N elements one by one costs O(N). */
static inline ls_status ls_array_grow(void *array, size_t *room, size_t need, size_t element)
{
	if (need <= *room)
		return LS_OK;
	void *pointer;
	size_t more = need + need / 2 + 8;
	memcpy(&pointer, array, sizeof(pointer));
	pointer = more > SIZE_MAX / element ? NULL : realloc(pointer, more * element);
	if (!pointer)
		return ls_fail(LS_EMEMORY, "no memory for %zu elements of %zu bytes", more, element);
	memcpy(array, &pointer, sizeof(pointer));
	*room = more;
	return LS_OK;
}

#endif
