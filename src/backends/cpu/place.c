/*
 * place.c - the greedy placement: spans in order of size, each at the lowest offset where nothing alive is in its way.
 */
#include "backends/cpu/place.h"

#include <stdlib.h>

#include "backends/cpu/occupancy.h"
#include "base/memory.h"

/* The time that spans live in. */
typedef struct period {
	int first, moments;
} period;

static period period_of(const ls_span *spans, size_t count)
{
	int first = count > 0 ? spans[0].from : 0, last = first;
	for (size_t i = 0; i < count; i++) {
		first = spans[i].from < first ? spans[i].from : first;
		last = spans[i].to > last ? spans[i].to : last;
	}
	return (period){ first, last - first + 1 };
}

static int larger_first(const void *a, const void *b)
{
	const ls_span *x = *(ls_span *const *)a, *y = *(ls_span *const *)b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Nothing is alive in a span of no bytes: it lies at 0, and takes no place. */
static ls_status place_in_order(ls_span **order, size_t count, ls_occupancy *taken, int first, size_t *total)
{
	size_t end = 0;
	for (size_t i = 0; i < count; i++) {
		ls_span *span = order[i];
		size_t bytes = ls_round_up64(span->bytes);
		int from = span->from - first, to = span->to - first;
		span->offset = bytes > 0 ? ls_occupancy_lowest(taken, from, to, bytes) : 0;
		LS_TRY(ls_occupancy_take(taken, from, to, span->offset, bytes));
		end = span->offset + bytes > end ? span->offset + bytes : end;
	}
	*total = end;
	return LS_OK;
}

ls_status ls_place(ls_span *spans, size_t count, size_t *total)
{
	period all = period_of(spans, count);
	ls_occupancy *taken = NULL;
	LS_TRY(ls_occupancy_new(&taken, all.moments));
	ls_span **order = malloc((count + 1) * sizeof(*order));
	ls_status status = order ? LS_OK : ls_fail(LS_EMEMORY, "no memory to plan %zu buffers", count);
	if (status == LS_OK) {
		for (size_t i = 0; i < count; i++)
			order[i] = &spans[i];
		qsort(order, count, sizeof(*order), larger_first);
		status = place_in_order(order, count, taken, all.first, total);
	}
	free(order);
	ls_occupancy_free(taken);
	return status;
}

ls_status ls_place_bound(const ls_span *spans, size_t count, size_t *bound)
{
	period all = period_of(spans, count);
	size_t alive = 0, most = 0, *born = calloc(2 * ((size_t)all.moments + 1), sizeof(*born));
	if (!born)
		return ls_fail(LS_EMEMORY, "no memory to plan %d moments", all.moments);
	size_t *gone = born + all.moments + 1;
	for (size_t i = 0; i < count; i++) {
		born[spans[i].from - all.first] += ls_round_up64(spans[i].bytes);
		gone[spans[i].to - all.first + 1] += ls_round_up64(spans[i].bytes);
	}
	for (int t = 0; t < all.moments; t++) {
		alive += born[t] - gone[t];
		most = alive > most ? alive : most;
	}
	free(born);
	*bound = most;
	return LS_OK;
}
