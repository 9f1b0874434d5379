/*
 * beside.c - the published figures with ours beside them. Published figures are checked like our own: against ideal,
 * against the wire, and against one another.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/report/chapters.h"
#include "tools/report/flags.h"
#include "tools/report/put.h"
#include "tools/results/published.h"

static int same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static int is_average(const ls_published *row)
{
	return same_text(row->hosts, "Avg");
}

static int same_job(const ls_published *a, const ls_published *b)
{
	return a->seed == b->seed && !strcmp(a->model, b->model) && same_text(a->data, b->data) && a->batch == b->batch;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Faster on this node than so many of its own devices; the published speedups are those of averages. */
static const char *check_node(ls_page *page, const ls_published *rows, size_t count, const ls_published *row)
{
	for (size_t i = 0; i < count; i++) {
		double times = row->wall_s > 0 ? rows[i].wall_s / row->wall_s : 0;
		if (!same_job(&rows[i], row) || rows[i].devices != 1 || row->nodes != 1 || is_average(row) ||
		    !same_text(rows[i].hosts, row->hosts) || !(times > 1.02 * row->devices))
			continue;
		return ls_page_text(
			page,
			"%.2f times as fast as one device of the same node, on %d: above ideal; likely the run on "
			"one device was disturbed, or the node was changed in between.",
			times, row->devices);
	}
	return NULL;
}

static const char *check_average(ls_page *page, const ls_published *rows, size_t count, const ls_published *row)
{
	double sum = 0, least = INFINITY, most = 0;
	int runs = 0;
	char mean[LS_NUMBER_TEXT];

	for (size_t i = 0; i < count && is_average(row); i++) {
		if (!same_job(&rows[i], row) || rows[i].nodes != row->nodes || rows[i].devices != row->devices ||
		    is_average(&rows[i]))
			continue;
		sum += rows[i].wall_s;
		least = fmin(least, rows[i].wall_s);
		most = fmax(most, rows[i].wall_s);
		runs++;
	}
	if (runs == 0 || fabs(sum / runs / row->wall_s - 1) < 0.01)
		return NULL;
	ls_runtime_text(mean, sum / runs);
	if (row->wall_s < least || row->wall_s > most)
		return ls_page_text(page, "cannot be the average of the rows above it, which is %s: no row is so %s.",
				    mean, row->wall_s > most ? "slow" : "fast");
	return ls_page_text(page, "the average of the rows above it is %s.", mean);
}

static const char *check_steps(ls_page *page, const ls_published *row)
{
	double samples = same_text(row->data, "bigmnist") ? 72e6 : 60e3;
	double steps = ceil(samples / (row->batch * row->devices));
	if (row->steps == 0 || fabs((double)row->steps - steps) <= 2)
		return NULL;
	return ls_page_text(page, "%.0f samples in batches of %d on %d devices are %.0f steps.", samples, row->batch,
			    row->devices, steps);
}

/* The same rate, to the last digit, with fewer devices of the same node. */
static const char *check_copy(ls_page *page, const ls_published *rows, size_t count, const ls_published *row)
{
	for (size_t i = 0; i < count && row->rate > 0; i++)
		if (same_job(&rows[i], row) && same_text(rows[i].hosts, row->hosts) && rows[i].devices < row->devices &&
		    fabs(rows[i].rate - row->rate) < 1e-9 && rows[i].hosts)
			return ls_page_text(page,
					    "the same figures as with %d devices: they were copied, not measured.",
					    rows[i].devices);
	return NULL;
}

static ls_claim claim_of(const ls_published *row)
{
	double samples_s = row->words ? row->rate / LS_PUBLISHED_WORDS : row->rate;
	double step_s = samples_s > 0 ? row->batch * row->devices / samples_s : 0;
	if (row->wall_s > 0 && row->steps > 0 && row->epochs > 0)
		step_s = row->wall_s / ((double)row->steps * row->epochs);
	return (ls_claim){ .speedup = row->speedup,
			   .nodes = row->nodes,
			   .devices = row->devices,
			   .step_s = step_s,
			   .gradient_bytes = ls_published_gradient_bytes(row->model),
			   .placement = "allreduce",
			   .wire = "fp32",
			   .link = row->link,
			   .reason = "a slow one-device baseline" };
}

static const char *check(ls_page *page, const ls_published *rows, size_t count, const ls_published *row)
{
	ls_claim claim = claim_of(row);
	const char *notes[] = { ls_flag(page, &claim), check_node(page, rows, count, row),
				check_average(page, rows, count, row), check_steps(page, row),
				check_copy(page, rows, count, row) };
	const char *all = NULL;
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (notes[i])
			all = all ? ls_page_text(page, "%s Also, %s", all, notes[i]) : notes[i];
	return all;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

/* How well a point of ours stands for a row; 0: not at all. bert-mini may stand for bert-base, with its name said. Rows
 * of single nodes that have no speedup of their own are left to their average. */
static int likeness(const ls_published *row, const ls_point *point)
{
	const ls_point_job *job = &point->job;
	int exact = !strcmp(job->model, row->model);
	if (point->state != LS_POINT_DONE || job->nodes != row->nodes || job->devices != row->devices ||
	    !strcmp(job->placement, "ps") || row->rate + row->speedup <= 0)
		return 0;
	if (!ls_model_related(job->model, row->model))
		return 0;
	if (row->data && job->data[0] && strcmp(row->data, job->data) != 0)
		return 0;
	return 1 + 2 * exact + (job->batch == row->batch);
}

typedef struct match {
	const ls_results *results;
	const ls_point *point;
} match;

static match best_match(const ls_sources *sources, const ls_published *row)
{
	match best = { 0 };
	int most = 0;
	for (size_t s = 0; s <= sources->sweep_count; s++) {
		const ls_results *results = s < sources->sweep_count ? &sources->sweeps[s] : &sources->runs;
		for (size_t i = 0; i < results->point_count; i++)
			if (likeness(row, &results->points[i]) > most) {
				most = likeness(row, &results->points[i]);
				best = (match){ results, &results->points[i] };
			}
	}
	return best;
}

static void add_ours(ls_page *page, ls_grid *grid, const ls_sources *sources, const ls_published *row)
{
	match m = best_match(sources, row);
	if (!m.point) {
		for (int i = 0; i < 3; i++)
			ls_grid_add(grid, "-");
		return;
	}
	ls_study study = { .page = page, .results = m.results };
	const ls_point *base = ls_study_base(&study, m.point);
	ls_grid_add(grid, "%s b%" PRId64, m.point->job.model, m.point->job.batch);
	ls_grid_number(grid, row->words ? ls_study_words(&study, m.point) : m.point->samples_per_s);
	ls_grid_fixed(grid, base ? m.point->samples_per_s / base->samples_per_s : 0, 2, "");
	ls_grid_note(grid, ls_flag_point(page, m.results, m.point, base));
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void add_row(ls_page *page, ls_grid *grid, const ls_published *row, const char *note)
{
	char text[LS_NUMBER_TEXT];
	const ls_point_job shape = { .nodes = row->nodes };
	ls_point_job job = shape;

	snprintf(job.shape, sizeof(job.shape), "%s", row->shape);
	ls_grid_add(grid, "%s", row->model);
	ls_grid_add(grid, "%s", row->data ? row->data : "-");
	ls_grid_add(grid, "%s", row->hosts ? row->hosts : "-");
	ls_grid_add(grid, "%d", row->nodes);
	ls_grid_add(grid, "%s", ls_point_shape(page, &job));
	ls_grid_add(grid, "%d", row->batch);
	ls_grid_whole(grid, row->steps);
	ls_grid_add(grid, "%s", row->wall_s > 0 ? ls_runtime_text(text, row->wall_s) : "-");
	if (row->rate > 0)
		ls_grid_add(grid, "%.2f%s", row->rate, row->words ? " words/s" : "");
	else
		ls_grid_add(grid, "-");
	ls_grid_fixed(grid, row->accuracy, 4, "");
	ls_grid_fixed(grid, row->speedup, 2, "");
	ls_grid_note(grid, note);
	page->published += note != NULL;
}

static void add_seed(ls_page *page, const ls_sources *sources, int seed)
{
	static const char *const heads[] = { "Model",   "Data",  "Node(s)",  "Nodes",     "Devices",
					     "Batch",   "Steps", "Runtime",  "Published", "Accuracy",
					     "Speedup", "Ours",  "Our rate", "Ours (x)" };
	size_t count;
	const ls_published *rows = ls_published_rows(&count);

	ls_page_heading(page, 3, "Seed %03d: %s", seed, ls_published_title(seed));
	ls_grid *grid = ls_page_table(page, 14, heads);
	if (grid)
		grid->text_columns = 3;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].seed != seed)
			continue;
		add_row(page, grid, &rows[i], check(page, rows, count, &rows[i]));
		add_ours(page, grid, sources, &rows[i]);
		if (is_average(&rows[i]))
			ls_grid_bold(grid);
	}
	ls_grid_drop_empty(grid);
}

/* ---- what 1 Gbps allows ------------------------------------------------------------------------------------------ */

static const ls_published *baseline_of(const ls_published *rows, size_t count, const char *model)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].seed == 4 && !strcmp(rows[i].model, model) && same_text(rows[i].hosts, "lm1"))
			return &rows[i];
	return NULL;
}

/* A step lasts as long as the gradients are on the wire, even if nothing had to be computed. */
static void add_limit(ls_grid *grid, const ls_published *base, int nodes, int devices)
{
	ls_claim claim = { .nodes = nodes, .gradient_bytes = ls_published_gradient_bytes(base->model) };
	double step_s = ls_wire_bytes(&claim) * 8 / 1e9;
	double rate = base->batch * devices * (base->words ? LS_PUBLISHED_WORDS : 1) / step_s;
	double ideal = base->rate * devices;
	char bytes[LS_NUMBER_TEXT];

	ls_grid_add(grid, "%s", base->model);
	ls_grid_add(grid, "%d", nodes);
	ls_grid_add(grid, "%d", devices);
	ls_grid_add(grid, "%s", ls_bytes_text(bytes, ls_wire_bytes(&claim)));
	ls_grid_add(grid, "%.0f ms", 1e3 * step_s);
	ls_grid_add(grid, "%.1f %s", rate, base->words ? "words/s" : "images/s");
	ls_grid_add(grid, "%.1f", ideal);
	ls_grid_add(grid, rate < ideal ? "%.2fx: the wire is the limit" : "%.2fx: enough for ideal", rate / base->rate);
}

static void add_limits(ls_page *page)
{
	static const char *const heads[] = { "Model",     "Nodes",   "Devices", "Each way a step",
					     "At 1 Gbps", "At most", "Ideal",   "Of one device" };
	static const char *const models[] = { "resnet18", "resnet101", "bert-base" };
	size_t count;
	const ls_published *rows = ls_published_rows(&count);

	ls_page_heading(page, 3, "What 1 Gbps allows");
	ls_page_paragraph(page,
			  "Seed 004 shows its runs over 1 Gbps as pictures only. Whatever they show, fp32 gradients "
			  "that every node sends and receives whole bound the rate: points of BERT-base above the "
			  "bound cannot be.");
	ls_grid *grid = ls_page_table(page, 8, heads);
	if (grid)
		grid->text_columns = 1;
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
		for (int nodes = 2; nodes <= 3; nodes++) {
			const ls_published *base = baseline_of(rows, count, models[m]);
			if (base)
				add_limit(grid, base, nodes, 4 * nodes);
		}
}

void ls_chapter_published(ls_page *page, const ls_sources *sources)
{
	ls_page_heading(page, 2, "Published figures");
	ls_page_paragraph(page,
			  "As they were published, on other machines: speedups can be compared, rates cannot. Devices "
			  "are those of a node. Ours are "
			  "points with as many nodes and devices, of the same model or, where the name says so, a "
			  "relative of it. Marked figures contradict arithmetic or one another.");
	for (int seed = 0; seed < LS_PUBLISHED_SEEDS; seed++)
		add_seed(page, sources, seed);
	add_limits(page);
}
