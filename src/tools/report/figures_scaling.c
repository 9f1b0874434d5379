/*
 * figures_scaling.c - throughput and speedup against devices.
 */
#include <inttypes.h>
#include <lockstep/train.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "tools/report/figures.h"
#include "tools/report/text.h"

int ls_figures_logarithmic(double fewest, double most)
{
	return most >= 8 * fewest;
}

/* Whether a line has more than its baseline to show. */
static int scales(const ls_line *line)
{
	return line->count > 1 && line->points[line->count - 1]->job.devices > line->points[0]->job.devices;
}

static void device_range(const ls_study *study, const char *model, double *fewest, double *most)
{
	*fewest = INFINITY;
	*most = 0;
	for (size_t l = 0; l < study->line_count; l++) {
		const ls_line *line = &study->lines[l];
		if (!scales(line) || (model && strcmp(line->points[0]->job.model, model) != 0))
			continue;
		*fewest = fmin(*fewest, (double)line->points[0]->job.devices);
		*most = fmax(*most, (double)line->points[line->count - 1]->job.devices);
	}
}

static ls_plot *begin(const ls_study *study, const char *title, const char *y_name, double fewest, double most)
{
	ls_plot *plot = ls_page_plot(study->page);
	if (!plot)
		return NULL;
	plot->title = title;
	plot->x_name = "devices";
	plot->y_name = y_name;
	plot->counts_x = plot->from_zero = 1;
	plot->log_x = plot->log_y = ls_figures_logarithmic(fewest, most);
	return plot;
}

static void add_ideal(ls_plot *plot, const char *name, double one, double fewest, double most)
{
	ls_curve *ideal = ls_plot_curve(plot, name, LS_CURVE_IDEAL);
	ls_curve_add(ideal, fewest, one * fewest, "");
	ls_curve_add(ideal, most, one * most, "");
}

typedef enum measure { THROUGHPUT, SPEEDUP, EFFICIENCY } measure;

static double value_of(const ls_study *study, const ls_point *point, measure what)
{
	double times = ls_study_speedup(study, point);
	return what == THROUGHPUT ? point->samples_per_s
	       : what == SPEEDUP  ? times
				  : 100 * times / (double)point->job.devices;
}

static void add_line(const ls_study *study, ls_plot *plot, const ls_line *line, const char *name, measure what)
{
	ls_curve *curve =
		ls_plot_curve(plot, name, line->figure == LS_FIGURE_SIMULATED ? LS_CURVE_SIMULATED : LS_CURVE_MEASURED);
	char rate[LS_NUMBER_TEXT];
	for (size_t i = 0; i < line->count; i++) {
		const ls_point *point = line->points[i];
		double times = ls_study_speedup(study, point), value = value_of(study, point, what);
		const char *ideal =
			times > 0 ? ls_page_text(study->page, ", %.2fx of %" PRId64, times, point->job.devices) : "";
		const char *tip =
			ls_page_text(study->page, "%s: %s on %" PRId64 " × %s devices: %s samples/s%s", line->label,
				     point->job.model, point->job.nodes, ls_point_shape(study->page, &point->job),
				     ls_number_text(rate, point->samples_per_s), ideal);
		if (value > 0)
			ls_curve_add(curve, (double)point->job.devices, value, tip);
	}
}

/* The ideal of the fastest baseline among lines of one kind of figure. */
static void add_ideal_of(const ls_study *study, ls_plot *plot, const char *model, ls_figure kind)
{
	double one = 0, fewest = INFINITY, most = 0;
	for (size_t l = 0; l < study->line_count; l++) {
		const ls_line *line = &study->lines[l];
		if (!scales(line) || line->figure != kind || strcmp(line->points[0]->job.model, model) != 0)
			continue;
		fewest = fmin(fewest, (double)line->points[0]->job.devices);
		most = fmax(most, (double)line->points[line->count - 1]->job.devices);
		if (line->base)
			one = fmax(one, line->base->samples_per_s);
	}
	if (one > 0)
		add_ideal(plot,
			  kind == LS_FIGURE_MEASURED ? "ideal"
						     : ls_page_text(study->page, "ideal, %s", ls_figure_name(kind)),
			  one, fewest, most);
}

static void plot_throughput(const ls_study *study, const char *model)
{
	double fewest, most;
	device_range(study, model, &fewest, &most);
	ls_plot *plot = begin(study, ls_page_text(study->page, "Throughput of %s by devices", model), "samples/s",
			      fewest, most);
	for (size_t l = 0; l < study->line_count; l++) {
		const ls_line *line = &study->lines[l];
		if (!scales(line) || strcmp(line->points[0]->job.model, model) != 0)
			continue;
		add_line(study, plot, line, line->brief, THROUGHPUT);
	}
	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
		add_ideal_of(study, plot, model, (ls_figure)kind);
}

/* ---- published --------------------------------------------------------------------------------------------------- */

/* Published rows in the plot of a sweep: those of its models or, where the set has none, of models of the same family
 * (bert-mini and bert-base). */
typedef struct choice {
	const ls_study *study;
	const ls_published *set;
	int exact;
} choice;

static int studies(const ls_study *study, const char *model, int exact)
{
	for (size_t l = 0; l < study->line_count; l++) {
		const char *ours = study->lines[l].points[0]->job.model;
		if (exact ? !strcmp(ours, model) : ls_model_related(ours, model))
			return 1;
	}
	return 0;
}

static choice choose(const ls_study *study, const ls_published *set)
{
	choice c = { .study = study, .set = set };
	for (size_t i = 0; i < set->row_count; i++)
		c.exact |= studies(study, set->rows[i].model, 1);
	return c;
}

/* Rows of single nodes are left out where the speedup is that of an average. */
static int is_shown(const choice *c, const ls_published_row *row)
{
	return row->speedup > 0 && studies(c->study, row->model, c->exact);
}

static int same_job(const ls_published_row *a, const ls_published_row *b)
{
	return !strcmp(a->model, b->model) && fabs(a->batch - b->batch) < 0.5 && !strcmp(a->data, b->data);
}

/* Rows of one curve: the same job on the same hosts or, where a set has averages over hosts, on one node or on several.
 */
static int same_curve(const choice *c, const ls_published_row *a, const ls_published_row *b)
{
	return same_job(a, b) &&
	       (c->set->has_averages ? (a->nodes > 1) == (b->nodes > 1) : !strcmp(a->hosts, b->hosts));
}

/* A curve over several nodes also begins at one device, that of its first host. */
static int leads(const choice *c, const ls_published_row *row, const ls_published_row *first)
{
	return row->devices == 1 && first->devices > 1 && same_job(row, first) &&
	       (c->set->has_averages || (row->hosts[0] && !strncmp(row->hosts, first->hosts, strlen(row->hosts))));
}

static const char *curve_name(const choice *c, const ls_published_row *row)
{
	ls_page *page = c->study->page;
	if (c->set->has_averages)
		return ls_page_text(page, "%s b%.0f, %s, published", row->data, row->batch,
				    row->nodes > 1 ? "nodes" : "one node");
	if (row->hosts[0] == '\0')
		return ls_page_text(page, "batch %.0f, published", row->batch);
	return ls_page_text(page, "%s %s, published", row->model, row->hosts);
}

static void add_published(const choice *c, ls_plot *plot, const ls_published_row *first)
{
	const char *name = curve_name(c, first);
	ls_curve *curve = ls_plot_curve(plot, name, LS_CURVE_PUBLISHED);
	for (int devices = 1; devices <= 64; devices++)
		for (size_t i = 0; i < c->set->row_count; i++) {
			const ls_published_row *row = &c->set->rows[i];
			if (row->devices == devices && is_shown(c, row) &&
			    (same_curve(c, row, first) || leads(c, row, first)))
				ls_curve_add(curve, devices, row->speedup,
					     ls_page_text(c->study->page, "%s: %d node%s, %d device%s, %.2fx (%s)",
							  name, row->nodes, ls_plural((uint64_t)row->nodes, "s"),
							  devices, ls_plural((uint64_t)devices, "s"), row->speedup,
							  c->set->title));
		}
}

/* Whether row `at` is the first of a curve; a single row is one only with several devices. */
static int begins_curve(const choice *c, size_t at)
{
	const ls_published_row *rows = c->set->rows;
	size_t alike = 0;
	for (size_t i = 0; i < c->set->row_count; i++) {
		int like = is_shown(c, &rows[i]) && same_curve(c, &rows[i], &rows[at]);
		if (like && i < at)
			return 0;
		alike += (size_t)like;
	}
	return is_shown(c, &rows[at]) && (alike > 1 || rows[at].devices > 1);
}

static double most_published(const choice *c)
{
	double most = 1;
	for (size_t i = 0; i < c->set->row_count; i++)
		if (is_shown(c, &c->set->rows[i]))
			most = fmax(most, c->set->rows[i].devices);
	return most;
}

static void plot_speedup(const ls_study *study, const ls_published *published)
{
	static const ls_published nothing;
	const choice c = choose(study, published ? published : &nothing);
	double fewest, most;

	device_range(study, NULL, &fewest, &most);
	most = fmax(most, most_published(&c));
	ls_plot *plot = begin(study, "Speedup by devices", "times one device", fewest, most);
	for (size_t l = 0; l < study->line_count; l++)
		if (scales(&study->lines[l]) && study->lines[l].base)
			add_line(study, plot, &study->lines[l], study->lines[l].label, SPEEDUP);
	for (size_t i = 0; i < c.set->row_count; i++)
		if (begins_curve(&c, i)) {
			add_published(&c, plot, &c.set->rows[i]);
			if (plot)
				plot->title = "Speedup by devices, ours and published";
		}
	add_ideal(plot, "ideal", 1, fewest, most);
}

/* Shows the distance to ideal where speedup lines lie close together. */
static void plot_efficiency(const ls_study *study)
{
	double fewest, most;
	device_range(study, NULL, &fewest, &most);
	ls_plot *plot = begin(study, "Efficiency by devices", "% of ideal", fewest, most);
	if (plot)
		plot->log_y = 0;
	for (size_t l = 0; l < study->line_count; l++)
		if (scales(&study->lines[l]) && study->lines[l].base)
			add_line(study, plot, &study->lines[l], study->lines[l].label, EFFICIENCY);
	ls_curve *ideal = ls_plot_curve(plot, "ideal", LS_CURVE_IDEAL);
	ls_curve_add(ideal, fewest, 100, "");
	ls_curve_add(ideal, most, 100, "");
}

void ls_figures_scaling(const ls_study *study, const ls_published *published)
{
	int any = 0, based = 0;
	for (size_t l = 0; l < study->line_count; l++) {
		const ls_line *line = &study->lines[l];
		int seen = !scales(line);
		for (size_t k = 0; k < l && !seen; k++)
			seen = scales(&study->lines[k]) &&
			       !strcmp(study->lines[k].points[0]->job.model, line->points[0]->job.model);
		if (!seen)
			plot_throughput(study, line->points[0]->job.model);
		any |= scales(line);
		based |= scales(line) && line->base;
	}
	if (!any || !based)
		return;
	plot_speedup(study, published);
	plot_efficiency(study);
}

/* ---- strategies -------------------------------------------------------------------------------------------------- */

/* A line is of the strategy of its largest point; lines of one node are where those of allreduce begin. */
static const char *strategy_of(const ls_line *line)
{
	const char *name = line->points[line->count - 1]->job.strategy;
	return strcmp(name, "local") ? name : ls_strategy_at(0)->name;
}

/* The strategy that others are compared with: the first of the table, allreduce. */
static int is_reference(const ls_line *line)
{
	return !strcmp(strategy_of(line), ls_strategy_at(0)->name);
}

/* The same job with different strategies. */
static int is_rival(const ls_line *a, const ls_line *b)
{
	const ls_point_job *x = &a->points[a->count - 1]->job, *y = &b->points[b->count - 1]->job;
	return !strcmp(x->model, y->model) && x->batch == y->batch && !strcmp(x->rate, y->rate) &&
	       !strcmp(x->wire, y->wire) && x->threads == y->threads && a->figure == b->figure;
}

static void plot_rivals(const ls_study *study, const ls_line *reference, const ls_line *line)
{
	const ls_point_job *job = &line->points[line->count - 1]->job;
	const char *first = ls_strategy_title(strategy_of(reference)), *second = ls_strategy_title(strategy_of(line));
	double fewest = (double)reference->points[0]->job.devices;
	double most = fmax((double)job->devices, (double)reference->points[reference->count - 1]->job.devices);

	ls_plot *plot = begin(study,
			      ls_page_text(study->page, "%s against %s against ideal: %s, batch %" PRId64 "%s%s", first,
					   second, job->model, job->batch, job->rate[0] ? ", " : "", job->rate),
			      "samples/s", fewest, most);
	add_line(study, plot, reference, first, THROUGHPUT);
	add_line(study, plot, line, second, THROUGHPUT);
	if (line->base)
		add_ideal(plot, "ideal", line->base->samples_per_s, fewest, most);
}

void ls_figures_strategies(const ls_study *study)
{
	for (size_t i = 0; i < study->line_count; i++) {
		const ls_line *rival = NULL;
		if (is_reference(&study->lines[i]))
			continue;
		for (size_t k = 0; k < study->line_count && !rival; k++)
			if (is_reference(&study->lines[k]) && scales(&study->lines[k]) &&
			    is_rival(&study->lines[k], &study->lines[i]))
				rival = &study->lines[k];
		if (rival && scales(&study->lines[i]))
			plot_rivals(study, rival, &study->lines[i]);
	}
}
