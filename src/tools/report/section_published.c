/*
 * section_published.c - published figures beside ours. Published figures are checked like our own: against the ideal
 * speedup, the bandwidth of the links, and each other.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/plausibility.h"
#include "tools/report/sections.h"
#include "tools/report/text.h"
#include "tools/report/variant.h"
#include "tools/results/published.h"

/* A row and its set. */
typedef struct figure {
	const ls_published *set;
	const ls_published_row *row;
} figure;

static int same_number(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static int same_job(const ls_published_row *a, const ls_published_row *b)
{
	return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && same_number(a->batch, b->batch);
}

static double rate_of(const ls_published_row *row)
{
	return row->words_per_s > 0 ? row->words_per_s : row->samples_per_s;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Faster on this node than its number of devices allows; the published speedups are those of averages. */
static const char *check_node(ls_page *page, figure f)
{
	const ls_published_row *row = f.row;
	for (size_t i = 0; i < f.set->row_count; i++) {
		const ls_published_row *one = &f.set->rows[i];
		double times = row->wall_s > 0 ? one->wall_s / row->wall_s : 0;
		if (!same_job(one, row) || one->devices != 1 || row->nodes != 1 || ls_published_is_average(row) ||
		    strcmp(one->hosts, row->hosts) != 0 || !(times > 1.02 * row->devices))
			continue;
		return ls_page_text(
			page,
			"%.2f times as fast as one device of the same node, on %d: above ideal; likely the run on "
			"one device was disturbed, or the node was changed in between.",
			times, row->devices);
	}
	return NULL;
}

static const char *check_average(ls_page *page, figure f)
{
	const ls_published_row *row = f.row;
	ls_published_mean mean = ls_published_mean_of(f.set, row);
	char text[LS_NUMBER_TEXT];

	if (!mean.differs || fabs(mean.wall_s / row->wall_s - 1) < 0.01)
		return NULL;
	ls_runtime_text(text, mean.wall_s);
	if (row->wall_s < mean.least_s || row->wall_s > mean.most_s)
		return ls_page_text(page, "cannot be the average of the rows above it, which is %s: no row is so %s.",
				    text, row->wall_s > mean.most_s ? "slow" : "fast");
	return ls_page_text(page, "the average of the rows above it is %s.", text);
}

static const char *check_steps(ls_page *page, figure f)
{
	double samples = !strcmp(f.row->data, "bigmnist") ? 72e6 : !strcmp(f.row->data, "mnist") ? 60e3 : 0;
	double steps = ceil(samples / (f.row->batch * f.row->devices));
	if (!(f.row->steps > 0) || !(samples > 0) || fabs(f.row->steps - steps) <= 2)
		return NULL;
	return ls_page_text(page, "%.0f samples in batches of %.0f on %d devices are %.0f steps.", samples,
			    f.row->batch, f.row->devices, steps);
}

/* The same rate, to the last digit, with fewer devices of the same node. */
static const char *check_copy(ls_page *page, figure f)
{
	for (size_t i = 0; i < f.set->row_count && rate_of(f.row) > 0; i++) {
		const ls_published_row *fewer = &f.set->rows[i];
		if (same_job(fewer, f.row) && fewer->hosts[0] && !strcmp(fewer->hosts, f.row->hosts) &&
		    fewer->devices < f.row->devices && same_number(rate_of(fewer), rate_of(f.row)))
			return ls_page_text(page,
					    "the same figures as with %d devices: they were copied, not measured.",
					    fewer->devices);
	}
	return NULL;
}

static ls_claim claim_of(figure f)
{
	const ls_published_row *row = f.row;
	double samples_s = ls_published_samples_per_s(f.set, row);
	double step_s = samples_s > 0 ? row->batch * row->devices / samples_s : 0;
	if (row->wall_s > 0 && row->steps > 0 && row->epochs > 0)
		step_s = row->wall_s / (row->steps * row->epochs);
	return (ls_claim){ .speedup = row->speedup,
			   .nodes = row->nodes,
			   .devices = row->devices,
			   .step_s = step_s,
			   .gradient_bytes = ls_published_gradient_bytes(f.set, row->model),
			   .strategy = "allreduce",
			   .wire = "fp32",
			   .link = row->link,
			   .reason = "a slow one-device baseline" };
}

static const char *check(ls_page *page, figure f)
{
	ls_claim claim = claim_of(f);
	const char *notes[] = { f.row->note[0] ? ls_page_text(page, "%s.", f.row->note) : NULL,
				ls_claim_check(page, &claim),
				check_node(page, f),
				check_average(page, f),
				check_steps(page, f),
				check_copy(page, f) };
	const char *all = NULL;
	for (size_t i = 0; i < LS_COUNT(notes); i++)
		if (notes[i])
			all = all ? ls_page_text(page, "%s Also, %s", all, notes[i]) : notes[i];
	return all;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

/* How well a point of ours matches a row; 0: not at all. bert-mini matches bert-base, and the table names the model.
 * Rows with neither rate nor speedup, as single nodes of an average, match nothing. */
static int likeness(const ls_published_row *row, const ls_point *point)
{
	const ls_point_job *job = &point->job;
	int exact = !strcmp(job->model, row->model);
	if (point->state != LS_POINT_DONE || job->nodes != row->nodes || job->devices != row->devices ||
	    ls_strategy_has_servers(job->strategy) || rate_of(row) + row->speedup <= 0)
		return 0;
	if (!ls_model_related(job->model, row->model))
		return 0;
	if (row->data[0] && job->data[0] && strcmp(row->data, job->data) != 0)
		return 0;
	return 1 + 2 * exact + same_number((double)job->batch, row->batch);
}

typedef struct match {
	const ls_results *results;
	const ls_point *point;
} match;

static match best_match(const ls_sources *sources, const ls_published_row *row, ls_figure kind)
{
	match best = { 0 };
	int most = 0;
	for (size_t s = 0; s <= sources->sweep_count; s++) {
		const ls_results *results = s < sources->sweep_count ? &sources->sweeps[s] : &sources->runs;
		for (size_t i = 0; i < results->point_count; i++)
			if (ls_point_figure(&results->points[i]) == kind && likeness(row, &results->points[i]) > most) {
				most = likeness(row, &results->points[i]);
				best = (match){ results, &results->points[i] };
			}
	}
	return best;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void add_text(ls_grid *grid, const char *text)
{
	ls_grid_add(grid, "%s", text[0] ? text : "-");
}

static void add_place(ls_page *page, ls_grid *grid, const ls_published_row *row, const char *hosts, ls_figure kind)
{
	ls_point_job job = { .nodes = row->nodes };

	snprintf(job.shape, sizeof(job.shape), "%s", row->shape);
	add_text(grid, row->model);
	add_text(grid, row->data);
	add_text(grid, hosts);
	ls_grid_add(grid, "%d", row->nodes);
	ls_grid_add(grid, "%s", ls_point_shape(page, &job));
	ls_grid_add(grid, "%.0f", row->batch);
	ls_grid_figure(grid, kind);
}

static void add_row(ls_page *page, ls_grid *grid, const ls_published_row *row, const char *note)
{
	char text[LS_NUMBER_TEXT];

	add_place(page, grid, row, row->hosts, LS_FIGURE_PUBLISHED);
	ls_grid_whole(grid, (int64_t)row->steps);
	ls_grid_add(grid, "%s", row->wall_s > 0 ? ls_runtime_text(text, row->wall_s) : "-");
	if (rate_of(row) > 0)
		ls_grid_add(grid, "%.2f%s", rate_of(row), row->words_per_s > 0 ? " words/s" : "");
	else
		ls_grid_add(grid, "-");
	ls_grid_fixed(grid, row->accuracy, 4, "");
	ls_grid_fixed(grid, row->speedup, 2, "");
	ls_grid_note(grid, note);
	page->published += note != NULL;
}

/* The row below a printed average: what its rows give, where that differs. */
static void add_mean(ls_page *page, ls_grid *grid, figure f)
{
	char text[LS_NUMBER_TEXT];
	ls_published_mean mean = ls_published_mean_of(f.set, f.row);

	if (!mean.differs)
		return;
	add_place(page, grid, f.row,
		  mean.rows > 1 ? ls_page_text(page, "mean of the %zu rows", mean.rows) : "the only row",
		  LS_FIGURE_COMPUTED);
	ls_grid_whole(grid, (int64_t)f.row->steps);
	ls_grid_add(grid, "%s", ls_runtime_text(text, mean.wall_s));
	ls_grid_add(grid, "-");
	ls_grid_add(grid, "-");
	ls_grid_fixed(grid, mean.speedup, 2, "");
}

/* A row below the published one for each kind of figure that we have. */
static void add_ours(ls_page *page, ls_grid *grid, const ls_sources *sources, const ls_published_row *row)
{
	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++) {
		match m = best_match(sources, row, (ls_figure)kind);
		if (!m.point)
			continue;
		const ls_point_job *job = &m.point->job;
		ls_study study = { .page = page, .results = m.results };
		const ls_point *base = ls_study_base(&study, m.point);
		add_text(grid, ls_variant_model(page, m.results, m.point));
		add_text(grid, job->data);
		ls_grid_add(grid, "ours: %s", ls_point_hosts(page, m.results, m.point));
		ls_grid_add(grid, "%" PRId64, job->nodes);
		ls_grid_add(grid, "%s", ls_point_shape(page, job));
		ls_grid_add(grid, "%" PRId64, job->batch);
		ls_grid_figure(grid, (ls_figure)kind);
		ls_grid_add(grid, "-");
		ls_grid_add(grid, "-");
		double rate = row->words_per_s > 0 ? ls_study_words(&study, m.point) : m.point->samples_per_s;
		ls_grid_add(grid, "%.2f%s", rate, row->words_per_s > 0 ? " words/s" : "");
		ls_grid_fixed(grid, m.point->accuracy, 4, "");
		ls_grid_fixed(grid, base ? m.point->samples_per_s / base->samples_per_s : 0, 2, "");
		ls_grid_note(grid, ls_point_check(page, m.results, m.point, base));
	}
}

static void add_set(ls_page *page, const ls_sources *sources, const ls_published *set)
{
	static const char *const heads[] = {
		"Model",  "Data",  "Hosts",   "Nodes",     "Devices per node", "Batch per device",
		"Figure", "Steps", "Runtime", "Samples/s", "Accuracy",         "Speedup"
	};

	ls_page_heading(page, 3, "Published: %s", set->title);
	if (set->setting[0])
		ls_page_paragraph(page, "%s.", set->setting);
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);
	if (grid)
		grid->text_columns = 3;
	for (size_t i = 0; i < set->row_count; i++) {
		const figure f = { set, &set->rows[i] };
		add_row(page, grid, f.row, check(page, f));
		if (ls_published_is_average(f.row)) {
			ls_grid_bold(grid);
			add_mean(page, grid, f);
		}
		add_ours(page, grid, sources, f.row);
	}
	ls_grid_drop_empty(grid);
}

/* ---- what 1 Gbps allows ------------------------------------------------------------------------------------------ */

/* A step takes at least the transfer time of the gradients, even if computing took no time. */
static void add_limit(ls_grid *grid, figure base, int nodes, int devices)
{
	int words = base.row->words_per_s > 0;
	ls_claim claim = { .nodes = nodes, .gradient_bytes = ls_published_gradient_bytes(base.set, base.row->model) };
	double step_s = ls_wire_bytes(&claim) * 8 / 1e9;
	double rate = base.row->batch * devices * (words ? base.set->words_per_sample : 1) / step_s;
	double ideal = rate_of(base.row) * devices;
	char bytes[LS_NUMBER_TEXT];

	ls_grid_add(grid, "%s", base.row->model);
	ls_grid_add(grid, "%d", nodes);
	ls_grid_add(grid, "%d", devices);
	ls_grid_add(grid, "%s", ls_bytes_text(bytes, ls_wire_bytes(&claim)));
	ls_grid_add(grid, "%.0f ms", 1e3 * step_s);
	ls_grid_add(grid, "%.1f %s", rate, words ? "words/s" : "samples/s");
	ls_grid_add(grid, "%.1f", ideal);
	ls_grid_add(grid, rate < ideal ? "%.2f: the link is the limit" : "%.2f: enough for ideal",
		    rate / rate_of(base.row));
}

/* Runs over 1 Gbps that were published as pictures only have no rows; the baselines of their machine bound them. */
static void add_limits(ls_page *page, const ls_published *set)
{
	static const char *const heads[] = { "Model",     "Nodes",   "Devices", "Each way per step",
					     "At 1 Gbps", "At most", "Ideal",   "Speedup at most" };

	ls_page_heading(page, 3, "What 1 Gbps allows");
	ls_page_paragraph(page,
			  "These runs over 1 Gbps were published as pictures only. Whatever they show, fp32 gradients "
			  "that every node sends and receives whole bound the rate: points of BERT-base above the "
			  "bound cannot be.");
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);
	if (grid)
		grid->text_columns = 1;
	for (size_t i = 0; i < set->row_count; i++) {
		const figure base = { set, &set->rows[i] };
		for (int nodes = 2; nodes <= 3 && !strcmp(base.row->hosts, "lm1"); nodes++)
			add_limit(grid, base, nodes, 4 * nodes);
	}
}

/* Whether a row of ours stands below one of the set. */
static int is_compared(const ls_sources *sources, const ls_published *set)
{
	for (size_t i = 0; i < set->row_count; i++)
		for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
			if (best_match(sources, &set->rows[i], (ls_figure)kind).point)
				return 1;
	return 0;
}

/* Sets without a row of ours are named, unless there is no other. */
static void name_others(ls_page *page, const ls_sources *sources)
{
	const char *names = NULL;

	for (size_t i = 0; i < sources->published_count; i++)
		if (!is_compared(sources, &sources->published[i]))
			names = names ? ls_page_text(page, "%s; %s", names, sources->published[i].title)
				      : sources->published[i].title;
	if (names)
		ls_page_paragraph(page, "Not shown, because nothing here was measured like it: %s.", names);
}

void ls_section_published(ls_page *page, const ls_sources *sources)
{
	int compared = 0;

	for (size_t i = 0; i < sources->published_count; i++)
		compared += is_compared(sources, &sources->published[i]);
	ls_page_heading(page, 2, "Published figures");
	ls_page_paragraph(page,
			  "As they were published, on other machines: compare speedups, not rates. Rows of ours have "
			  "the same number of nodes and devices, and the same model or one of its family. "
			  "Marked figures contradict arithmetic or one another.");
	for (size_t i = 0; i < sources->published_count; i++) {
		if (compared > 0 && !is_compared(sources, &sources->published[i]))
			continue;
		add_set(page, sources, &sources->published[i]);
		if (!strcmp(sources->published[i].name, "distml-clusters"))
			add_limits(page, &sources->published[i]);
	}
	ls_page_legend(page);
	if (compared > 0)
		name_others(page, sources);
}
