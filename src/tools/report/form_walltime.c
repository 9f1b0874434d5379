/*
 * form_walltime.c - whole runs: one row per run, and the average in bold where several runs have the same nodes and
 * devices. Speedups are those of averages.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/form.h"
#include "tools/report/launches.h"
#include "tools/report/plausibility.h"
#include "tools/report/text.h"
#include "tools/report/variant.h"

/* Points of one table: the same model, options, data and batch. */
static int same_table(const ls_point *left, const ls_point *right)
{
	const ls_point_job *a = &left->job, *b = &right->job;
	return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && a->batch == b->batch &&
	       a->epochs == b->epochs && !strcmp(a->kind, b->kind) && ls_variant_same(left, right);
}

/* Rows of one average. */
static int same_group(const ls_point *left, const ls_point *right)
{
	const ls_point_job *a = &left->job, *b = &right->job;
	return same_table(left, right) && ls_point_wall_figure(left) == ls_point_wall_figure(right) &&
	       a->nodes == b->nodes && a->devices == b->devices && !strcmp(a->shape, b->shape) &&
	       !(a->speed < b->speed) && !(a->speed > b->speed);
}

typedef struct group {
	const ls_point *first; /* NULL: there is none */
	size_t runs;
	double mean_s, least_s, most_s;
} group;

static double seconds_of(const ls_point *point, size_t repeat)
{
	const ls_point_job *job = &point->job;
	if (ls_point_wall_figure(point) == ls_point_figure(point))
		return point->repeats[repeat].wall_s;
	return (double)job->epochs * (double)job->samples / point->repeats[repeat].samples_per_s;
}

static group group_of(const ls_results *results, const ls_point *first)
{
	group g = { .first = first, .least_s = INFINITY };
	double sum = 0;
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (point->state != LS_POINT_DONE || !same_group(point, first))
			continue;
		for (size_t k = 0; k < point->repeat_count; k++) {
			double seconds = seconds_of(point, k);
			if (!ls_point_repeat_counts(point, k))
				continue;
			g.runs++;
			sum += seconds;
			g.least_s = fmin(g.least_s, seconds);
			g.most_s = fmax(g.most_s, seconds);
		}
	}
	g.mean_s = g.runs > 0 ? sum / (double)g.runs : 0;
	return g;
}

/* The runs with one device, measured like the point, on nodes at full speed. */
static group baseline_of(const ls_results *results, const ls_point *point)
{
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *base = &results->points[i];
		if (base->state == LS_POINT_DONE && base->job.devices == 1 && same_table(base, point) &&
		    ls_point_wall_figure(base) == ls_point_wall_figure(point) && ls_point_comparable(base, point))
			return group_of(results, base);
	}
	return (group){ 0 };
}

/* Why a speedup over this baseline may be above ideal; NULL: no reason in the baseline. */
static const char *reason_of(ls_page *page, const group *base, double speedup, int64_t devices)
{
	double spread = base->runs > 1 ? (base->most_s - base->least_s) / base->mean_s : 0;
	if (!ls_spread_explains(speedup, devices, spread))
		return NULL;
	return ls_page_text(page, "an unstable one-device baseline (its runs differ by %.0f %%)", 100 * spread);
}

static int64_t steps_of(const ls_point_job *job)
{
	int64_t batch = job->batch * job->devices;
	return job->samples > 0 && batch > 0 ? (job->samples + batch - 1) / batch : job->steps;
}

typedef struct row {
	const ls_point *point;
	double seconds, speedup; /* 0: not shown */
	const char *reason;      /* why the speedup may be above ideal */
	const char *doubt;       /* about the run; NULL: none */
	const char *where;
} row;

static void add_row(const ls_study *study, ls_grid *grid, const row *r)
{
	const ls_point *point = r->point;
	char runtime[LS_NUMBER_TEXT];
	ls_grid_add(grid, "%" PRId64, point->job.nodes);
	ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
	ls_grid_whole(grid, point->job.epochs);
	ls_grid_add(grid, "%" PRId64, point->job.batch);
	ls_grid_whole(grid, steps_of(&point->job));
	ls_grid_figure(grid, ls_point_wall_figure(point));
	ls_grid_add(grid, "%s", ls_runtime_text(runtime, r->seconds));
	ls_grid_note(grid, r->doubt);
	ls_grid_fixed(grid, r->speedup, 2, "");
	if (r->speedup > 0) {
		ls_claim claim = { .speedup = r->speedup,
				   .devices = point->job.devices,
				   .nodes = point->job.nodes,
				   .reason = r->reason };
		ls_grid_note(grid, ls_claim_check(study->page, &claim));
	}
	ls_grid_add(grid, "%s", r->where);
}

static const char *doubt_of(ls_page *page, const ls_point *point, size_t repeat)
{
	if (!ls_point_repeat_counts(point, repeat))
		return ls_page_text(page, "the machine was busy: not in the average.");
	return point->busy ? ls_page_text(page, "the machine was busy in every launch.") : NULL;
}

static void add_group(const ls_study *study, ls_grid *grid, const ls_point *first)
{
	const ls_results *results = study->results;
	group g = group_of(results, first), baseline = baseline_of(results, first), *base = &baseline;
	row average = { .point = first,
			.seconds = g.mean_s,
			.speedup = base->mean_s > 0 && g.mean_s > 0 ? base->mean_s / g.mean_s : 0,
			.where = "Avg" };

	average.reason = reason_of(study->page, base, average.speedup, first->job.devices);
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (point->state != LS_POINT_DONE || !same_group(point, first))
			continue;
		row one = { .point = point,
			    .speedup = g.runs > 1 ? 0 : average.speedup,
			    .reason = average.reason,
			    .where = ls_point_hosts(study->page, results, point) };
		for (size_t k = 0; k < point->repeat_count; k++) {
			one.seconds = seconds_of(point, k);
			one.doubt = doubt_of(study->page, point, k);
			add_row(study, grid, &one);
		}
	}
	if (g.runs < 2)
		return;
	add_row(study, grid, &average);
	ls_grid_bold(grid);
}

static int begins(const ls_results *results, size_t at, int (*is_same)(const ls_point *, const ls_point *))
{
	for (size_t i = 0; i < at; i++)
		if (results->points[i].state == LS_POINT_DONE && is_same(&results->points[i], &results->points[at]))
			return 0;
	return results->points[at].state == LS_POINT_DONE;
}

static void add_table(const ls_study *study, const ls_point *first)
{
	static const char *const heads[] = { "Nodes", "Devices per node", "Epochs",  "Batch per device",
					     "Steps", "Figure",           "Runtime", "Speedup",
					     "Hosts" };
	const ls_results *results = study->results;

	ls_page_heading(study->page, 3, "%s%s%s: wall time", first->job.data[0] ? first->job.data : "",
			first->job.data[0] ? ", " : "", ls_variant_model(study->page, results, first));
	ls_grid *grid = ls_page_table(study->page, LS_COUNT(heads), heads);
	for (size_t i = 0; i < results->point_count; i++)
		if (begins(results, i, same_group) && same_table(&results->points[i], first))
			add_group(study, grid, &results->points[i]);
	ls_grid_drop_empty(grid);
}

void ls_form_walltime(const ls_study *study)
{
	ls_page_paragraph(
		study->page,
		"Runtime (h:mm:ss) is the wall time of the whole command, start and end included, where it was "
		"measured.");
	for (size_t i = 0; i < study->results->point_count; i++)
		if (begins(study->results, i, same_table))
			add_table(study, &study->results->points[i]);
	ls_form_launches(study);
}
