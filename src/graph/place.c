/*
 * place.c - the greedy placement: spans in order of size, each at the lowest offset where nothing alive is in its way.
 */
#include "graph/place.h"

#include <stdlib.h>

#include "base/memory.h"

static int larger_first(const void *a, const void *b)
{
	const ls_span *x = *(ls_span *const *)a, *y = *(ls_span *const *)b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x < y ? -1 : x > y;
}

static int by_offset(const void *a, const void *b)
{
	const ls_span *x = *(ls_span *const *)a, *y = *(ls_span *const *)b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The lowest gap that holds `span` between `busy`, those already placed that live when it does. Sorts `busy`. */
static size_t lowest_gap(ls_span **busy, size_t count, const ls_span *span)
{
	size_t offset = 0;
	qsort(busy, count, sizeof(*busy), by_offset);
	for (size_t i = 0; i < count; i++) {
		if (offset + ls_round_up64(span->bytes) <= busy[i]->offset)
			break;
		size_t end = busy[i]->offset + ls_round_up64(busy[i]->bytes);
		offset = end > offset ? end : offset;
	}
	return offset;
}

ls_status ls_place(ls_span *spans, size_t count, size_t *total)
{
	ls_span **order = malloc(2 * (count + 1) * sizeof(*order));
	if (order == NULL)
		return ls_fail(LS_EMEMORY, "no memory to plan %zu buffers", count);
	ls_span **busy = order + count;
	size_t end = 0;

	for (size_t i = 0; i < count; i++)
		order[i] = &spans[i];
	qsort(order, count, sizeof(*order), larger_first);
	for (size_t i = 0; i < count; i++) {
		size_t alive = 0;
		for (size_t j = 0; j < i; j++)
			if (order[j]->bytes > 0 && order[j]->from <= order[i]->to && order[i]->from <= order[j]->to)
				busy[alive++] = order[j];
		order[i]->offset = lowest_gap(busy, alive, order[i]);
		size_t top = order[i]->offset + ls_round_up64(order[i]->bytes);
		end = top > end ? top : end;
	}
	free(order);
	*total = end;
	return LS_OK;
}

size_t ls_place_bound(const ls_span *spans, size_t count)
{
	size_t most = 0;
	for (size_t i = 0; i < count; i++) {
		size_t alive = 0;
		for (size_t j = 0; j < count; j++)
			if (spans[j].from <= spans[i].from && spans[i].from <= spans[j].to)
				alive += ls_round_up64(spans[j].bytes);
		most = alive > most ? alive : most;
	}
	return most;
}
