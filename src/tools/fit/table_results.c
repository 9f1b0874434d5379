/*
 * table_results.c - points of a sweep.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "exchange/strategy.h"
#include "tools/fit/table.h"
#include "tools/results/results.h"

/* "node1+node2": hosts of the nodes that compute. */
static const char *hosts_of(ls_fit_table *t, const ls_point *point)
{
	const char *text = "";

	for (size_t i = 0; text && i < point->node_count && (int64_t)i < point->job.nodes; i++)
		text = ls_arena_format(t->arena, "%s%s%s", text, i > 0 ? "+" : "", point->nodes[i].host);
	return text;
}

/* Of the repeats of one process, how far they differ. */
static double repeat_spread(const ls_point *point)
{
	double mean = 0, squares = 0, n = (double)point->repeat_count;

	for (size_t i = 0; i < point->repeat_count; i++)
		mean += point->repeats[i].samples_per_s / n;
	for (size_t i = 0; i < point->repeat_count; i++)
		squares += (point->repeats[i].samples_per_s - mean) * (point->repeats[i].samples_per_s - mean);
	return n > 1 ? sqrt(squares / (n - 1)) / mean : 0;
}

/* Processes differ more than the repeats of one: their range, over what it is expected to be of n normal variates in
 * standard deviations. */
static double launch_spread(const ls_point *point, size_t launches)
{
	static const double range[] = { 1.128, 1.693, 2.059, 2.326, 2.534, 2.704 };
	size_t i = launches - 2;
	return point->spread_between / range[i < LS_COUNT(range) ? i : LS_COUNT(range) - 1];
}

static void set_spread(ls_fit_point *p, const ls_point *point)
{
	size_t launches = ls_point_launches_done(point);

	p->repeats = launches > 1 ? (int64_t)launches : (int64_t)point->repeat_count;
	p->spread = launches > 1 ? launch_spread(point, launches) : repeat_spread(point);
}

/* Why the planner cannot simulate a strategy; NULL: it can. One node has none. */
static const char *unplanned(const char *strategy)
{
	const ls_strategy_info *row = ls_strategy_of(strategy);
	if (!row)
		return strcmp(strategy, "local") != 0 ? "it is not known here" : NULL;
	return row->unplanned;
}

/* What else the points of one job have in common, for people, too. */
static const char *job_of(ls_fit_table *t, const ls_point_job *job)
{
	return ls_arena_format(t->arena, "%s, %" PRId64 " thread%s%s%s%s%s", job->optimizer, job->threads,
			       ls_plural((uint64_t)job->threads, "s"), strcmp(job->kind, "train") ? "" : ", training",
			       job->replay ? ", replayed" : "", job->arguments[0] ? ", " : "", job->arguments);
}

static ls_status add_point(ls_fit_table *t, const ls_point *point, int number)
{
	const ls_point_job *job = &point->job;
	ls_fit_point p = { .line = number,
			   .model = ls_arena_copy(t->arena, job->model),
			   .data = ls_arena_copy(t->arena, job->data),
			   .job = job_of(t, job),
			   .hosts = hosts_of(t, point),
			   .shape = ls_arena_copy(t->arena, job->shape),
			   .link = ls_arena_copy(t->arena, job->rate),
			   .strategy = ls_arena_copy(t->arena, job->strategy[0] ? job->strategy : "allreduce"),
			   .wire = ls_arena_copy(t->arena, job->wire[0] ? job->wire : "fp32"),
			   .arguments = ls_arena_copy(t->arena, job->arguments),
			   .nodes = job->nodes,
			   .devices = job->devices,
			   .servers = job->servers,
			   .threads = job->threads > 0 ? job->threads : 1,
			   .batch = job->batch,
			   .rate = point->samples_per_s,
			   .update_s = point->update_ms / 1e3,
			   .bytes = point->gradient_bytes,
			   .replayed = job->replay != 0,
			   .emulated = job->rate[0] != '\0',
			   .unequal = job->speed > 0 && job->speed < 1 };

	if (!p.model || !p.data || !p.job || !p.hosts || !p.shape || !p.link || !p.strategy || !p.wire || !p.arguments)
		return LS_EMEMORY;
	if (point->state != LS_POINT_DONE)
		return ls_fit_table_omit(t, number, "%s", point->reason[0] ? point->reason : "not measured");
	if (unplanned(p.strategy))
		return ls_fit_table_omit(t, number, "strategy %s cannot be planned: %s", p.strategy,
					 unplanned(p.strategy));
	if (p.batch < 1)
		return ls_fit_table_omit(t, number, "batch_per_device is not known");
	set_spread(&p, point);
	return ls_fit_table_add(t, &p);
}

ls_status ls_fit_table_from_results(ls_fit_table *t, const char *path)
{
	ls_results results;

	LS_TRY(ls_results_read(&results, path));
	t->is_sweep = 1;
	t->cores = results.machine.cores;
	t->label = ls_arena_copy(t->arena, path);
	t->title = ls_arena_copy(t->arena, results.title[0] ? results.title : results.sweep);
	ls_status status = t->label && t->title ? LS_OK : LS_EMEMORY;
	for (size_t i = 0; status == LS_OK && i < results.point_count; i++)
		status = add_point(t, &results.points[i], (int)i + 1);
	ls_results_release(&results);
	return status;
}
