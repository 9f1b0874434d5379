/*
 * table_published.c - rows of published figures, or of a file in their format.
 */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "tools/fit/table.h"
#include "tools/results/published.h"

/* Of its repeats: how many, and their relative standard deviation. */
static void set_spread(ls_fit_point *p, const double repeats[LS_PUBLISHED_REPEATS])
{
	double mean = 0, squares = 0;
	int n = 0;

	while (n < LS_PUBLISHED_REPEATS && repeats[n] > 0)
		mean += repeats[n++];
	mean /= n > 0 ? n : 1;
	for (int i = 0; i < n; i++)
		squares += (repeats[i] - mean) * (repeats[i] - mean);
	p->repeats = n;
	p->spread = n > 1 ? sqrt(squares / (n - 1)) / mean : 0;
}

/* Samples per second; 0: the row does not have enough figures for it. */
static double rate_of(const ls_published *set, const ls_published_row *row)
{
	if (row->wall_s > 0)
		return row->epochs * row->steps * row->batch * row->devices / row->wall_s;
	return ls_published_samples_per_s(set, row);
}

static ls_status add_row(ls_fit_table *t, const ls_published *set, const ls_published_row *row)
{
	ls_fit_point p = { .line = row->line,
			   .model = row->model,
			   .data = row->data,
			   .job = "",
			   .hosts = row->hosts,
			   .shape = row->shape,
			   .link = row->link,
			   .strategy = row->nodes > 1 ? "allreduce" : "local",
			   .wire = "fp32",
			   .arguments = "",
			   .nodes = row->nodes,
			   .devices = row->devices,
			   .threads = 1,
			   .batch = (int64_t)row->batch,
			   .rate = rate_of(set, row) };

	if (ls_published_is_average(row))
		return ls_fit_table_omit(t, row->line, "an average of other rows");
	if (!(p.rate > 0))
		return ls_fit_table_omit(t, row->line, "wall_s gives no rate without epochs and steps");
	set_spread(&p, row->repeats);
	return ls_fit_table_add(t, &p);
}

static void set_samples(ls_fit_table *t, const ls_published *set)
{
	ls_model_options *m = &t->model;

	m->channels = set->channels > 0 ? set->channels : m->channels;
	m->height = set->height > 0 ? set->height : m->height;
	m->width = set->width > 0 ? set->width : m->width;
	m->classes = set->classes > 0 ? (int)set->classes : m->classes;
	m->text.tokens = (int)set->tokens;
	m->text.vocabulary = (int)set->vocabulary;
}

ls_status ls_fit_table_from_published(ls_fit_table *t, const char *which)
{
	ls_published *set;
	size_t count;

	if (!strcmp(which, "published"))
		return ls_fail(LS_EINVALID, "'published' is several tables; name one, such as oneflow-bert");
	LS_TRY(ls_published_read(&set, &count, t->arena, which, 1));
	t->name = set->name;
	t->title = set->title;
	if (!strpbrk(which, "./"))
		t->label = ls_arena_format(t->arena, "published/%s.csv", set->name);
	if (!t->label)
		return LS_EMEMORY;
	set_samples(t, set);
	for (size_t i = 0; i < set->fault_count; i++)
		LS_TRY(ls_fit_table_omit(t, set->faults[i].line, "%s", set->faults[i].reason));
	for (size_t i = 0; i < set->row_count; i++)
		LS_TRY(add_row(t, set, &set->rows[i]));
	return LS_OK;
}
