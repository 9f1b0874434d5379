/*
 * grow.h - arrays whose length is found out while they are filled.
 */
#ifndef LS_BASE_GROW_H
#define LS_BASE_GROW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Make room for `need` elements in the malloc'd array that *array points to. Half as much again, so that adding one by
 * one costs a constant. */
static inline ls_status ls_grow(void *array, size_t *room, size_t need, size_t element)
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
