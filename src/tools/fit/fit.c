/*
 * fit.c - all rows of a table predicted, with errors and intervals.
 *
 * The model's error of a table of another trainer is that of the planner on the other published tables, computed here:
 * a table says nothing about its own interval.
 */
#include <lockstep/plan.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/options.h"
#include "tools/fit/calibration.h"
#include "tools/fit/predict.h"
#include "tools/forecast/interval.h"
#include "tools/forecast/list.h"
#include "tools/results/published.h"

enum { ROWS_MAX = 100000, NODES_MAX = 100000, ERRORS_MAX = 10000 };

typedef struct fitting {
	const ls_fit_options *o;
	ls_arena arena;
	ls_fit_table table;
	ls_fit_settings settings;
	double errors[ERRORS_MAX]; /* on other tables */
	size_t error_count;
	ls_fit fit;
	size_t room;
} fitting;

/* ---- errors on other tables -------------------------------------------------------------------------------------- */

static ls_fit_settings settings_of(const ls_fit_options *o, const ls_fit_table *table)
{
	return (ls_fit_settings){ .latency_us = o->latency_us,
				  .spread = o->spread >= 0 ? o->spread : ls_fit_spread(table),
				  .bucket_bytes = o->bucket_bytes };
}

static ls_status add_errors(fitting *f, const char *name)
{
	static const ls_fit_options usual = LS_FIT_OPTIONS_INIT;
	ls_fit_table table;

	LS_TRY(ls_fit_table_read(&table, &f->arena, name, NULL));
	ls_fit_settings settings = settings_of(&usual, &table);
	for (size_t i = 0; i < table.count && f->error_count < ERRORS_MAX; i++) {
		ls_fit_prediction p;
		if (ls_fit_is_alone(&table.point[i]))
			continue;
		LS_TRY(ls_fit_predict(&table, &table.point[i], &settings, &p));
		if (!p.why)
			f->errors[f->error_count++] = log(p.rate / table.point[i].rate);
	}
	return LS_OK;
}

static ls_status gather_errors(fitting *f)
{
	for (size_t i = 0; !f->table.is_sweep && i < ls_published_built_in_count; i++)
		if (strcmp(ls_published_built_in[i].name, f->table.name) != 0)
			LS_TRY(add_errors(f, ls_published_built_in[i].name));
	return LS_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void set_interval(fitting *f, ls_fit_row *row, const ls_fit_prediction *p)
{
	double model = f->table.is_sweep ? ls_interval_simulation(p->bottleneck)
					 : ls_interval_quantile(f->errors, f->error_count);
	double half = row->fitted ? p->half : hypot(p->half, model);

	row->low = p->rate * exp(-half);
	row->high = p->rate * exp(half);
}

static ls_fit_row row_of(const ls_fit_point *p)
{
	ls_fit_row row = { .line = p->line,
			   .batch = p->batch,
			   .nodes = p->nodes,
			   .devices = p->devices,
			   .servers = p->servers,
			   .fitted = ls_fit_is_alone(p) && p->rate > 0,
			   .measured = p->rate };

	ls_text_printable(row.model, sizeof(row.model), p->model);
	ls_text_printable(row.data, sizeof(row.data), p->data);
	ls_text_printable(row.hosts, sizeof(row.hosts), p->hosts);
	ls_text_printable(row.shape, sizeof(row.shape), p->shape);
	ls_text_printable(row.strategy, sizeof(row.strategy), p->strategy);
	ls_text_printable(row.wire, sizeof(row.wire), p->wire);
	ls_text_printable(row.rate, sizeof(row.rate), p->nodes + p->servers > 1 ? p->link : "");
	return row;
}

static ls_status add_row(fitting *f, const ls_fit_point *point)
{
	ls_fit_prediction p;

	LS_TRY(ls_fit_predict(&f->table, point, &f->settings, &p));
	if (p.why)
		return ls_fit_table_omit(&f->table, point->line, "%s", p.why);
	if (f->fit.count == f->room) {
		size_t room = f->room > 0 ? 2 * f->room : 64;
		ls_fit_row *grown = room <= ROWS_MAX ? realloc(f->fit.row, room * sizeof(*grown)) : NULL;
		if (!grown)
			return ls_fail(LS_EMEMORY, "no memory for %zu predicted rows; shorten the lists", room);
		f->fit.row = grown;
		f->room = room;
	}
	f->fit.spread = fmax(f->fit.spread, p.spread);
	ls_fit_row row = row_of(point);
	row.predicted = p.rate;
	row.error = point->rate > 0 ? p.rate / point->rate - 1 : 0;
	snprintf(row.bottleneck, sizeof(row.bottleneck), "%s", p.bottleneck);
	set_interval(f, &row, &p);
	f->fit.row[f->fit.count++] = row;
	return LS_OK;
}

/* ---- other numbers of nodes -------------------------------------------------------------------------------------- */

/* The most devices that were measured on the base's host. */
static int64_t most_devices(const ls_fit_table *t, const ls_fit_point *base)
{
	int64_t most = base->devices;
	for (size_t i = 0; i < t->count; i++)
		if (ls_fit_is_alone(&t->point[i]) && ls_fit_same_host(&t->point[i], base) && t->point[i].devices > most)
			most = t->point[i].devices;
	return most;
}

static ls_status add_more(fitting *f, const ls_fit_point *base, int64_t nodes, const char *link)
{
	int64_t devices = f->o->devices > 0 ? f->o->devices : most_devices(&f->table, base);
	ls_fit_point p = *base;

	p.line = 0;
	p.rate = 0;
	p.nodes = nodes;
	p.devices = nodes * devices;
	p.shape = ls_arena_format(&f->arena, "%" PRId64, devices);
	p.link = ls_arena_copy(&f->arena, link);
	p.strategy = nodes > 1 ? "allreduce" : "local";
	p.emulated = 0;
	return p.shape && p.link ? add_row(f, &p) : LS_EMEMORY;
}

/* Every job on every host that has a row of one node, on nodes like that one. */
static ls_status add_lists(fitting *f)
{
	ls_list nodes, rates = { 0 };
	const ls_fit_table *t = &f->table;

	if (!f->o->nodes)
		return LS_OK;
	LS_TRY(ls_list_split(&nodes, "nodes", f->o->nodes));
	if (f->o->rate)
		LS_TRY(ls_list_split(&rates, "rate", f->o->rate));
	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *base = &t->point[i];
		if (!ls_fit_is_alone(base) || ls_fit_base(t, base, base->hosts) != base)
			continue;
		for (int n = 0; n < nodes.count; n++)
			for (int k = 0; k == 0 || k < rates.count; k++) {
				int64_t number;
				LS_TRY(ls_list_number("nodes", nodes.text[n], NODES_MAX, &number));
				LS_TRY(add_more(f, base, number, rates.count > 0 ? rates.text[k] : base->link));
			}
	}
	return LS_OK;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static void summarize(ls_fit *fit)
{
	double sum = 0;

	for (size_t i = 0; i < fit->count; i++) {
		const ls_fit_row *row = &fit->row[i];
		if (row->fitted || !(row->measured > 0))
			continue;
		fit->compared++;
		fit->inside += row->measured >= row->low && row->measured <= row->high;
		fit->worst_error = fmax(fit->worst_error, fabs(row->error));
		sum += fabs(row->error);
	}
	fit->mean_error = fit->compared > 0 ? sum / (double)fit->compared : 0;
}

static int by_line(const void *a, const void *b)
{
	const ls_fit_left_out *left = a, *right = b;
	return (left->line > right->line) - (left->line < right->line);
}

static ls_status list_left_out(fitting *f)
{
	ls_fit *fit = &f->fit;

	fit->left_out_count = f->table.omitted;
	fit->left_out = calloc(fit->left_out_count + 1, sizeof(*fit->left_out));
	if (!fit->left_out)
		return ls_fail(LS_EMEMORY, "no memory for %zu rows that were left out", f->table.omitted);
	for (size_t i = 0; i < fit->left_out_count; i++) {
		fit->left_out[i].line = f->table.omission[i].line;
		ls_text_printable(fit->left_out[i].reason, sizeof(fit->left_out[i].reason),
				  f->table.omission[i].reason);
	}
	qsort(fit->left_out, fit->left_out_count, sizeof(*fit->left_out), by_line);
	return LS_OK;
}

/* Without a row of one node nothing can be fitted; the first reason of a row that was left out helps. */
static ls_status check_fitted(const fitting *f)
{
	for (size_t i = 0; i < f->table.count; i++)
		if (ls_fit_is_alone(&f->table.point[i]))
			return LS_OK;
	if (f->table.omitted == 0)
		return ls_fail(LS_EFORMAT, "%s: no row of one node, from which the others could be predicted",
			       f->table.label);
	return ls_fail(LS_EFORMAT, "%s: no row of one node can be used; %s %d: %s", f->table.label,
		       ls_fit_unit(&f->table), f->table.omission[0].line, f->table.omission[0].reason);
}

static ls_status fit_table(fitting *f)
{
	char rate[LS_LIST_TEXT] = "";

	if (!f->o->table)
		return ls_fail(LS_EINVALID, "options.table is missing: the rows to fit");
	if (f->o->rate)
		snprintf(rate, sizeof(rate), "%.*s", (int)strcspn(f->o->rate, ","), f->o->rate);
	LS_TRY(ls_fit_table_read(&f->table, &f->arena, f->o->table, rate[0] ? rate : NULL));
	LS_TRY(check_fitted(f));
	f->settings = settings_of(f->o, &f->table);
	f->fit.is_sweep = f->table.is_sweep;
	ls_text_printable(f->fit.title, sizeof(f->fit.title), f->table.title);
	ls_text_printable(f->fit.path, sizeof(f->fit.path), f->table.label);
	LS_TRY(gather_errors(f));
	for (size_t i = 0; i < f->table.count; i++)
		LS_TRY(add_row(f, &f->table.point[i]));
	LS_TRY(add_lists(f));
	summarize(&f->fit);
	return list_left_out(f);
}

ls_status ls_fit_make(ls_fit *out, const ls_fit_options *options)
{
	ls_fit_options own = LS_FIT_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, bucket_bytes, "LS_FIT_OPTIONS_INIT"));
	fitting *f = calloc(1, sizeof(*f));
	if (!f)
		return ls_fail(LS_EMEMORY, "no memory to fit a table");
	f->o = &own;
	ls_status status = fit_table(f);
	ls_arena_release(&f->arena);
	if (status == LS_OK)
		*out = f->fit;
	else
		ls_fit_release(&f->fit);
	free(f);
	return status;
}

void ls_fit_release(ls_fit *fit)
{
	free(fit->row);
	free(fit->left_out);
	*fit = (ls_fit){ 0 };
}
