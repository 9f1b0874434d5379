/*
 * form_walltime.c - whole runs: a row for every run, and where there are several with as many nodes and devices, their
 * average in bold. The speedup is that of averages.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/flags.h"
#include "report/form.h"
#include "report/put.h"

/* Points of one table: the same model, data and batch. */
static int same_table(const ls_point_job *a, const ls_point_job *b)
{
	return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && a->batch == b->batch &&
	       a->epochs == b->epochs && !strcmp(a->kind, b->kind);
}

static int same_group(const ls_point_job *a, const ls_point_job *b)
{
	return same_table(a, b) && a->nodes == b->nodes && a->devices == b->devices && !strcmp(a->shape, b->shape);
}

typedef struct group {
	const ls_point *first;
	size_t runs;
	double mean_s;
} group;

/* Of a bench the rate is known and the run is worked out from it. */
static int is_worked_out(const ls_point_job *job)
{
	return !strcmp(job->kind, "bench") && job->epochs > 0 && job->samples > 0;
}

static double seconds_of(const ls_point *point, size_t repeat)
{
	const ls_point_job *job = &point->job;
	if (!is_worked_out(job))
		return point->repeats[repeat].wall_s;
	return (double)job->epochs * (double)job->samples / point->repeats[repeat].samples_per_s;
}

static group group_of(const ls_results *results, const ls_point *first)
{
	group g = { .first = first };
	double sum = 0;
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (point->state != LS_POINT_DONE || !same_group(&point->job, &first->job))
			continue;
		for (size_t k = 0; k < point->repeat_count; k++, g.runs++)
			sum += seconds_of(point, k);
	}
	g.mean_s = g.runs > 0 ? sum / (double)g.runs : 0;
	return g;
}

/* Mean wall time with one device; 0: none. */
static double baseline_of(const ls_results *results, const ls_point *point)
{
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *base = &results->points[i];
		if (base->state == LS_POINT_DONE && base->job.devices == 1 && same_table(&base->job, &point->job))
			return group_of(results, base).mean_s;
	}
	return 0;
}

static int64_t steps_of(const ls_point_job *job)
{
	int64_t batch = job->batch * job->devices;
	return job->samples > 0 && batch > 0 ? (job->samples + batch - 1) / batch : job->steps;
}

static void add_row(const ls_study *study, ls_grid *grid, const ls_point *point, double seconds, double speedup,
		    const char *where)
{
	char runtime[LS_NUMBER_TEXT];
	ls_grid_add(grid, "%" PRId64, point->job.nodes);
	ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
	ls_grid_whole(grid, point->job.epochs);
	ls_grid_add(grid, "%" PRId64, point->job.batch);
	ls_grid_whole(grid, steps_of(&point->job));
	ls_grid_add(grid, "%s%s", ls_runtime_text(runtime, seconds), ls_point_star(point));
	ls_grid_fixed(grid, speedup, 2, "");
	if (speedup > 0) {
		ls_claim claim = { .speedup = speedup, .devices = point->job.devices, .nodes = point->job.nodes };
		ls_grid_note(grid, ls_flag(study->page, &claim));
	}
	ls_grid_add(grid, "%s", where);
}

static void add_group(const ls_study *study, ls_grid *grid, const ls_point *first, double base_s)
{
	const ls_results *results = study->results;
	group g = group_of(results, first);
	double speedup = base_s > 0 && g.mean_s > 0 ? base_s / g.mean_s : 0;

	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (point->state != LS_POINT_DONE || !same_group(&point->job, &first->job))
			continue;
		const char *where = ls_point_hosts(study->page, results, point);
		for (size_t k = 0; k < point->repeat_count; k++)
			add_row(study, grid, point, seconds_of(point, k), g.runs > 1 ? 0 : speedup, where);
	}
	if (g.runs < 2)
		return;
	add_row(study, grid, first, g.mean_s, speedup, "Avg");
	ls_grid_bold(grid);
}

static int begins(const ls_results *results, size_t at, int (*is_same)(const ls_point_job *, const ls_point_job *))
{
	for (size_t i = 0; i < at; i++)
		if (results->points[i].state == LS_POINT_DONE &&
		    is_same(&results->points[i].job, &results->points[at].job))
			return 0;
	return results->points[at].state == LS_POINT_DONE;
}

static void add_table(const ls_study *study, const ls_point *first)
{
	static const char *const heads[] = { "#Nodes", "#Devices", "Epoch",   "Batchsize",
					     "Steps",  "Runtime",  "Speedup", "Node(s)" };
	const ls_results *results = study->results;

	ls_page_heading(study->page, 3, "%s%s%s Performance Results", first->job.data[0] ? first->job.data : "",
			first->job.data[0] ? ", " : "", first->job.model);
	ls_grid *grid = ls_page_table(study->page, 8, heads);
	for (size_t i = 0; i < results->point_count; i++)
		if (begins(results, i, same_group) && same_table(&results->points[i].job, &first->job))
			add_group(study, grid, &results->points[i], baseline_of(results, first));
	ls_grid_drop_empty(grid);
	if (is_worked_out(&first->job))
		ls_page_paragraph(study->page,
				  "Worked out from the rate over a number of steps, without tests, start and end.");
}

void ls_form_walltime(const ls_study *study)
{
	ls_page_paragraph(
		study->page,
		"Runtime is that of the whole command, start and end included (h:mm:ss), where nothing else is said.");
	for (size_t i = 0; i < study->results->point_count; i++)
		if (begins(study->results, i, same_table))
			add_table(study, &study->results->points[i]);
}
