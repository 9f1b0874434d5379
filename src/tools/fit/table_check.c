/*
 * table_check.c - rows that cannot be what they say are left out, and repeats of a row become one.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/fit/table.h"

/* A rate this many times what its devices do alone is not noise. */
#define BY_FAR 1.2

/* Mark of a row that goes. */
enum { GONE = 0 };

static void drop(ls_fit_point *p)
{
	p->nodes = GONE;
}

static int is_here(const ls_fit_point *p)
{
	return p->nodes != GONE;
}

static int same_place(const ls_fit_point *a, const ls_fit_point *b)
{
	return ls_fit_same_host(a, b) && a->nodes == b->nodes && a->servers == b->servers &&
	       !strcmp(a->shape, b->shape) && !strcmp(a->link, b->link) && !strcmp(a->strategy, b->strategy) &&
	       !strcmp(a->wire, b->wire);
}

static int same_rate(const ls_fit_point *a, const ls_fit_point *b)
{
	return fabs(a->rate - b->rate) <= 1e-9 * a->rate;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static ls_status check_model(ls_fit_table *t, ls_fit_point *p)
{
	ls_model_options model = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;

	if (ls_model_row_of(p->model))
		return LS_OK;
	model.name = p->model;
	if (ls_model_build(&graph, &model) == LS_OK) /* its message suggests the nearest */
		ls_graph_free(graph);
	drop(p);
	return ls_fit_table_omit(t, p->line, "%s", ls_last_error());
}

/* ---- repeats ----------------------------------------------------------------------------------------------------- */

/* All later rows of the same job in the same place go into row i: their mean, and how far they differ. */
static ls_status join_repeats(ls_fit_table *t, size_t i)
{
	ls_fit_point *first = &t->point[i];
	double sum = first->rate, squares = first->rate * first->rate, n = 1;

	for (size_t k = i + 1; k < t->count; k++) {
		ls_fit_point *p = &t->point[k];
		if (!is_here(p) || !same_place(first, p))
			continue;
		drop(p);
		if (same_rate(first, p)) {
			LS_TRY(ls_fit_table_omit(t, p->line, "the same row as %s %d", ls_fit_unit(t), first->line));
			continue;
		}
		LS_TRY(ls_fit_table_omit(t, p->line, "repeats %s %d, where their mean is used", ls_fit_unit(t),
					 first->line));
		sum += p->rate;
		squares += p->rate * p->rate;
		n++;
	}
	if (n > 1) {
		first->rate = sum / n;
		first->repeats = (int64_t)n;
		first->spread = sqrt(fmax(0, (squares - sum * sum / n) / (n - 1))) / first->rate;
	}
	return LS_OK;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* The row of the same job with the fewest devices on the same single host; NULL: it is that itself. */
static const ls_fit_point *fewer_devices(const ls_fit_table *t, const ls_fit_point *p)
{
	const ls_fit_point *least = p;

	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *other = &t->point[i];
		if (is_here(other) && ls_fit_is_alone(other) && ls_fit_same_host(other, p) &&
		    other->devices < least->devices)
			least = other;
	}
	return least != p ? least : NULL;
}

static const ls_fit_point *copied_from(const ls_fit_table *t, const ls_fit_point *p)
{
	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *other = &t->point[i];
		if (is_here(other) && ls_fit_is_alone(other) && ls_fit_same_host(other, p) &&
		    other->devices < p->devices && same_rate(other, p))
			return other;
	}
	return NULL;
}

/* One-node rows: against the same host with fewer devices. */
static ls_status check_alone(ls_fit_table *t, ls_fit_point *p)
{
	const ls_fit_point *copied = copied_from(t, p), *few = fewer_devices(t, p);
	double ideal = few ? few->rate / (double)few->devices * (double)p->devices : INFINITY;

	if (copied) {
		drop(p);
		return ls_fit_table_omit(t, p->line, "the rate of %s %d, which has fewer devices: copied, not measured",
					 ls_fit_unit(t), copied->line);
	}
	if (p->rate <= BY_FAR * ideal)
		return LS_OK;
	drop(p);
	return ls_fit_table_omit(
		t, p->line, "%s samples/s with %" PRId64 " devices are %.2f times what %s %d allows, %s with %" PRId64,
		ls_fit_rate_text(t, p->rate), p->devices, p->rate / ideal, ls_fit_unit(t), few->line,
		ls_fit_rate_text(t, few->rate), few->devices);
}

ls_status ls_fit_table_check(ls_fit_table *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++)
		LS_TRY(check_model(t, &t->point[i]));
	for (size_t i = 0; i < t->count; i++)
		if (is_here(&t->point[i]))
			LS_TRY(join_repeats(t, i));
	for (size_t i = 0; i < t->count; i++)
		if (is_here(&t->point[i]) && ls_fit_is_alone(&t->point[i]))
			LS_TRY(check_alone(t, &t->point[i]));
	for (size_t i = 0; i < t->count; i++)
		if (is_here(&t->point[i]))
			t->point[kept++] = t->point[i];
	t->count = kept;
	return LS_OK;
}
