/*
 * place.h - share one block of memory among buffers that live at different times.
 */
#ifndef LS_BACKENDS_CPU_PLACE_H
#define LS_BACKENDS_CPU_PLACE_H

#include <stddef.h>

#include "base/status.h"

/* A buffer wanted from time `from` to time `to`, both included. */
typedef struct ls_span {
	size_t bytes;
	int from, to;
	size_t offset; /* result */
} ls_span;

/*
 * Give every span an offset (64-byte aligned) so that spans which live at the same time do not overlap. Greedy, largest
 * first, lowest free place: within a few percent of the peak of live bytes on chains with skips. About
 * count * log(moments) steps, and memory for every moment from the first to the last (occupancy.h).
 */
ls_status ls_place(ls_span *spans, size_t count, size_t *total);

/* The largest sum of bytes alive at one time: no placement can need less. */
ls_status ls_place_bound(const ls_span *spans, size_t count, size_t *bound);

#endif
