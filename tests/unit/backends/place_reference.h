/*
 * place_reference.h - the greedy placement in its simplest form, in count^2 steps: what ls_place() must agree with.
 */
#ifndef LS_TEST_PLACE_REFERENCE_H
#define LS_TEST_PLACE_REFERENCE_H

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/place.h"
#include "base/memory.h"

static inline int reference_blocks(const ls_span *placed, const ls_span *span, size_t offset)
{
	return placed->bytes > 0 && placed->from <= span->to && span->from <= placed->to &&
	       placed->offset < offset + ls_round_up64(span->bytes) &&
	       offset < placed->offset + ls_round_up64(placed->bytes);
}

/* The span to be placed next: the largest that is not, the first of equals. */
static inline size_t reference_next(const ls_span *spans, size_t count, const char *done)
{
	size_t next = count;
	for (size_t i = 0; i < count; i++)
		if (!done[i] && (next == count || spans[i].bytes > spans[next].bytes))
			next = i;
	return next;
}

/* From 0 on, past whatever is in the way, until nothing is: the lowest, for only ends of others are worth a try. */
static inline void reference_settle(ls_span *spans, size_t count, const char *done, ls_span *span)
{
	int moved = 1;
	span->offset = 0;
	while (moved && span->bytes > 0) {
		moved = 0;
		for (size_t i = 0; i < count; i++)
			if (done[i] && reference_blocks(&spans[i], span, span->offset)) {
				span->offset = spans[i].offset + ls_round_up64(spans[i].bytes);
				moved = 1;
			}
	}
}

static inline void reference_place(ls_span *spans, size_t count)
{
	char *done = calloc(count + 1, 1);
	size_t next;
	while (done && (next = reference_next(spans, count, done)) < count) {
		reference_settle(spans, count, done, &spans[next]);
		done[next] = 1;
	}
	free(done);
}

/* The index of the first span that the reference puts elsewhere; `count`: none. */
static inline size_t reference_differs(const ls_span *spans, size_t count)
{
	ls_span *copy = malloc((count + 1) * sizeof(*copy));
	size_t i = 0;
	if (!copy)
		return 0;
	memcpy(copy, spans, count * sizeof(*copy));
	reference_place(copy, count);
	while (i < count && copy[i].offset == spans[i].offset)
		i++;
	free(copy);
	return i;
}

#endif
