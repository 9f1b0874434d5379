#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/link_rate.h"
#include "base/names.h"
#include "tools/report/figures.h"
#include "tools/report/plausibility.h"
#include "tools/report/sections.h"
#include "tools/report/text.h"

enum { ROWS_MAX = 200, CURVES_MAX = 10 };

/* Kinds of figures that predictions are compared with. */
static const ls_figure ours[] = { LS_FIGURE_MEASURED, LS_FIGURE_SIMULATED };

/* Predictions with a larger error are explained. */
#define ERROR_TOLD 0.15

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static const char *wire_of(const char *wire)
{
	return wire[0] ? wire : "fp32";
}

static int same_setting(const ls_forecast_row *a, const ls_forecast_row *b)
{
	return !strcmp(a->strategy, b->strategy) && !strcmp(wire_of(a->wire), wire_of(b->wire)) &&
	       !strcmp(a->rate, b->rate);
}

/* One node has no links: it belongs to every setting without servers. */
static int belongs(const ls_forecast_row *row, const ls_forecast_row *setting)
{
	return same_setting(row, setting) || (row->nodes == 1 && !ls_strategy_has_servers(setting->strategy));
}

static int same_cluster(const ls_forecast_row *a, const ls_forecast_row *b)
{
	return same_setting(a, b) && a->nodes == b->nodes && a->devices == b->devices && a->servers == b->servers;
}

/* Of rows that differ only in bucket size, the fastest is shown. */
static int is_best(const ls_forecast *f, size_t at)
{
	for (size_t i = 0; i < f->count; i++)
		if (same_cluster(&f->row[i], &f->row[at]) &&
		    (f->row[i].samples_per_s > f->row[at].samples_per_s ||
		     (i < at && !(f->row[i].samples_per_s < f->row[at].samples_per_s))))
			return 0;
	return 1;
}

static int is_of(const ls_forecast *f, const ls_forecast_row *row, const ls_point *point)
{
	const ls_point_job *job = &point->job;
	if (point->state != LS_POINT_DONE || strcmp(job->model, f->model) != 0 || job->batch != f->batch ||
	    job->nodes != row->nodes - row->servers || job->devices != row->devices)
		return 0;
	if (row->nodes == 1)
		return job->servers == 0;
	return job->servers == row->servers && !strcmp(job->strategy, row->strategy) &&
	       !strcmp(wire_of(job->wire), wire_of(row->wire)) && ls_link_rate(job->rate) == ls_link_rate(row->rate);
}

/* The point of a predicted row among figures of one kind; NULL: none. A bench is preferred: it measures what is
 * predicted, while training includes tests and input. */
static const ls_point *find(const ls_sources *sources, const ls_forecast *f, const ls_forecast_row *row, ls_figure kind)
{
	const ls_point *found = NULL;
	for (size_t s = 0; s < sources->sweep_count; s++)
		for (size_t i = 0; i < sources->sweeps[s].point_count; i++) {
			const ls_point *point = &sources->sweeps[s].points[i];
			if (ls_point_figure(point) != kind || !is_of(f, row, point))
				continue;
			if (!strcmp(point->job.kind, "bench"))
				return point;
			found = found ? found : point;
		}
	return found;
}

/* ---- plot -------------------------------------------------------------------------------------------------------- */

static const char *setting_name(ls_page *page, const ls_forecast_row *row)
{
	return ls_page_text(page, "%s%s%s%s%s", ls_strategy_title(row->strategy), row->rate[0] ? ", " : "", row->rate,
			    strcmp(wire_of(row->wire), "fp32") ? ", " : "",
			    strcmp(wire_of(row->wire), "fp32") ? row->wire : "");
}

static void add_predicted(ls_page *page, ls_curve *curve, const ls_forecast_row *row)
{
	char rate[LS_NUMBER_TEXT];
	ls_curve_add(curve, (double)row->devices, row->samples_per_s,
		     ls_page_text(page,
				  "%s, predicted: %" PRId64 " node%s, %" PRId64
				  " device%s, %s samples/s, %.0f %% of ideal%s%s",
				  setting_name(page, row), row->nodes, ls_plural((uint64_t)row->nodes, "s"),
				  row->devices, ls_plural((uint64_t)row->devices, "s"),
				  ls_number_text(rate, row->samples_per_s), 100 * row->efficiency,
				  row->bottleneck[0] ? ", limited by " : "", row->bottleneck));
}

static void add_point(ls_page *page, ls_curve *curve, const ls_forecast_row *row, const ls_point *point)
{
	char rate[LS_NUMBER_TEXT];
	if (point)
		ls_curve_add(curve, (double)row->devices, point->samples_per_s,
			     ls_page_text(page, "%s, %s: %" PRId64 " node%s, %" PRId64 " device%s, %s samples/s",
					  setting_name(page, row), ls_figure_name(ls_point_figure(point)), row->nodes,
					  ls_plural((uint64_t)row->nodes, "s"), row->devices,
					  ls_plural((uint64_t)row->devices, "s"),
					  ls_number_text(rate, point->samples_per_s)));
}

/* Marks without a line, in the style of the predicted curve. */
static ls_curve *begin_marks(ls_page *page, ls_plot *plot, const ls_curve *line, const char *name, ls_figure kind)
{
	ls_curve *marks = ls_plot_curve(plot, ls_page_text(page, "%s, %s", name, ls_figure_name(kind)),
					kind == LS_FIGURE_SIMULATED ? LS_CURVE_SIMULATED : LS_CURVE_MEASURED);
	if (line && marks) {
		marks->style = line->style;
		marks->points_only = 1;
	}
	return marks;
}

static int by_devices(const ls_forecast *f, int64_t *devices)
{
	int64_t next = INT64_MAX;
	for (size_t i = 0; i < f->count; i++)
		if (f->row[i].devices > *devices && f->row[i].devices < next)
			next = f->row[i].devices;
	*devices = next;
	return next != INT64_MAX;
}

static void add_setting(ls_page *page, ls_plot *plot, const ls_sources *sources, const ls_forecast *f,
			const ls_forecast_row *setting)
{
	const char *name = setting_name(page, setting);
	ls_curve *line = ls_plot_curve(plot, name, LS_CURVE_PREDICTED);
	ls_curve *marks[LS_COUNT(ours)];
	int64_t devices = 0;

	for (size_t k = 0; k < LS_COUNT(ours); k++)
		marks[k] = begin_marks(page, plot, line, name, ours[k]);
	while (by_devices(f, &devices))
		for (size_t i = 0; i < f->count; i++)
			if (f->row[i].devices == devices && belongs(&f->row[i], setting) && is_best(f, i)) {
				add_predicted(page, line, &f->row[i]);
				for (size_t k = 0; k < LS_COUNT(ours); k++)
					add_point(page, marks[k], &f->row[i], find(sources, f, &f->row[i], ours[k]));
				break;
			}
}

static void add_ideal(ls_plot *plot, const ls_forecast *f, double fewest, double most)
{
	const ls_forecast_row *least = &f->row[0];
	for (size_t i = 0; i < f->count; i++)
		if (f->row[i].devices < least->devices)
			least = &f->row[i];
	if (!(least->efficiency > 0))
		return;
	double one = least->samples_per_s / least->efficiency / (double)least->devices;
	ls_curve *ideal = ls_plot_curve(plot, "ideal", LS_CURVE_IDEAL);
	ls_curve_add(ideal, fewest, one * fewest, "");
	ls_curve_add(ideal, most, one * most, "");
}

static void plot_forecast(ls_page *page, const ls_sources *sources, const ls_forecast *f)
{
	double fewest = INFINITY, most = 0;
	size_t curves = 0;
	int several = 0; /* one node is the first point of other curves, not a curve itself */
	ls_plot *plot = ls_page_plot(page);

	for (size_t i = 0; i < f->count; i++) {
		fewest = fmin(fewest, (double)f->row[i].devices);
		most = fmax(most, (double)f->row[i].devices);
		several |= f->row[i].nodes > 1;
	}
	if (!plot)
		return;
	plot->title =
		ls_page_text(page, "Predicted throughput of %s, batch %" PRId64 " (marks: run, hollow: simulated)",
			     f->model, f->batch);
	plot->x_name = "devices";
	plot->y_name = "samples/s";
	plot->counts_x = plot->from_zero = 1;
	plot->log_x = plot->log_y = ls_figures_logarithmic(fewest, most);
	for (size_t i = 0; i < f->count && curves < CURVES_MAX; i++) {
		size_t k = 0;
		while (k < i && !same_setting(&f->row[k], &f->row[i]))
			k++;
		if (k < i || (f->row[i].nodes == 1 && several))
			continue;
		add_setting(page, plot, sources, f, &f->row[i]);
		curves++;
	}
	add_ideal(plot, f, fewest, most);
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* The measured point with one device; NULL: none. */
static const ls_point *one_device(const ls_sources *sources, const ls_forecast *f, const ls_point *like)
{
	for (size_t s = 0; s < sources->sweep_count; s++)
		for (size_t i = 0; i < sources->sweeps[s].point_count; i++) {
			const ls_point *point = &sources->sweeps[s].points[i];
			const ls_point_job *job = &point->job;
			if (point->state == LS_POINT_DONE && job->devices == 1 && job->nodes == 1 &&
			    job->servers == 0 && !strcmp(job->model, f->model) && job->batch == f->batch &&
			    !strcmp(job->kind, like->job.kind) && ls_point_comparable(point, like))
				return point;
		}
	return NULL;
}

/* The likely reason of a large error, from the parts of the step. NULL: the error is small. */
static const char *explain(ls_page *page, const ls_sources *sources, const ls_forecast *f, const ls_forecast_row *row,
			   const ls_point *point)
{
	double error = row->samples_per_s / point->samples_per_s - 1, waited = point->exposed_ms + point->wait_ms;
	const ls_point *one = one_device(sources, f, point);
	double alone = row->efficiency > 0 ? row->samples_per_s / row->efficiency / (double)row->devices : 0;
	double device = one && alone > 0 ? alone / one->samples_per_s - 1 : 0;
	const char *faster = error > 0 ? "faster than it was" : "slower than it was";

	if (fabs(error) < ERROR_TOLD)
		return NULL;
	if (device * error > 0 && fabs(device) > 0.5 * fabs(error))
		return ls_page_text(page,
				    "predicted %s: one device does %.1f samples/s in the profile, and %.1f %s here. "
				    "The profile is of another or a less busy machine; record it where the sweep runs.",
				    faster, alone, one->samples_per_s, ls_figure_name(ls_point_figure(one)));
	if (!(point->compute_ms > 0))
		return ls_page_text(page, "predicted %s: the measured parts of the step are not known.", faster);
	return ls_page_text(
		page,
		"predicted %s: %.1f ms of computing, of which %.1f were measured, and %.1f ms of waiting for "
		"others, of which %.1f were measured. %s",
		faster, row->compute_ms, point->compute_ms, row->exposed_ms, waited,
		fabs(row->compute_ms - point->compute_ms) > fabs(row->exposed_ms - waited)
			? "Cores that are shared, or run at another clock, are not in the profile."
			: "Links that are slower or faster than the cluster says, or shared with others, would do "
			  "that.");
}

/* With its 90 % interval; older forecasts have none. */
static void add_rate(ls_grid *grid, const ls_forecast_row *row)
{
	char rate[LS_NUMBER_TEXT], low[LS_NUMBER_TEXT], high[LS_NUMBER_TEXT];

	if (row->samples_per_s_high > 0)
		ls_grid_add(grid, "%s (%s–%s)", ls_number_text(rate, row->samples_per_s),
			    ls_number_text(low, row->samples_per_s_low), ls_number_text(high, row->samples_per_s_high));
	else
		ls_grid_number(grid, row->samples_per_s);
}

static void add_place(ls_grid *grid, const ls_forecast_row *row, ls_figure kind)
{
	ls_grid_add(grid, "%s", row->strategy);
	ls_grid_add(grid, "%s", row->rate[0] ? row->rate : "-");
	ls_grid_add(grid, "%s", wire_of(row->wire));
	ls_grid_add(grid, "%" PRId64, row->nodes);
	ls_grid_add(grid, "%" PRId64, row->devices);
	ls_grid_whole(grid, row->servers);
	ls_grid_figure(grid, kind);
}

static void add_prediction(ls_grid *grid, const ls_forecast_row *row)
{
	char bytes[LS_NUMBER_TEXT];
	add_place(grid, row, LS_FIGURE_PREDICTED);
	add_rate(grid, row);
	ls_grid_add(grid, "-");
	ls_grid_add(grid, "%.0f %%", 100 * row->efficiency);
	ls_grid_add(grid, "%s", row->bottleneck[0] ? row->bottleneck : "-");
	ls_grid_number(grid, row->step_ms);
	ls_grid_number(grid, row->compute_ms);
	ls_grid_number(grid, row->exposed_ms);
	ls_grid_add(grid, "%s", row->bucket_bytes ? ls_bytes_text(bytes, (double)row->bucket_bytes) : "-");
}

/* The row below a prediction: what was run, by how much the prediction is off, and the efficiency over one device of
 * the same kind of figure. */
static void add_run(ls_page *page, const ls_sources *sources, ls_grid *grid, const ls_forecast *f,
		    const ls_forecast_row *row, const ls_point *point)
{
	const ls_point *one = one_device(sources, f, point);
	add_place(grid, row, ls_point_figure(point));
	ls_grid_number(grid, point->samples_per_s);
	ls_grid_add(grid, "%+.1f %%", 100 * (row->samples_per_s / point->samples_per_s - 1));
	ls_grid_note(grid, explain(page, sources, f, row, point));
	ls_grid_fixed(grid, one ? 100 * point->samples_per_s / one->samples_per_s / (double)row->devices : 0, 0, " %");
	ls_grid_add(grid, "-");
	ls_grid_number(grid, point->step_ms);
	ls_grid_number(grid, point->compute_ms);
	ls_grid_number(grid, point->exposed_ms + point->wait_ms);
	ls_grid_add(grid, "-");
}

static void add_table(ls_page *page, const ls_sources *sources, const ls_forecast *f)
{
	static const char *const heads[] = { "Strategy", "Link",    "Wire",      "Nodes",   "Devices",
					     "Servers",  "Figure",  "Samples/s", "Error",   "Efficiency",
					     "Limit",    "Step ms", "Compute",   "Exposed", "Bucket" };
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);
	size_t shown = 0, left = 0;
	if (grid)
		grid->text_columns = 3;
	for (size_t i = 0; i < f->count; i++) {
		if (!is_best(f, i))
			continue;
		if (shown++ >= ROWS_MAX) {
			left++;
			continue;
		}
		add_prediction(grid, &f->row[i]);
		for (size_t k = 0; k < LS_COUNT(ours); k++) {
			const ls_point *point = find(sources, f, &f->row[i], ours[k]);
			if (point)
				add_run(page, sources, grid, f, &f->row[i], point);
		}
	}
	ls_grid_drop_empty(grid);
	if (left > 0)
		ls_page_paragraph(page, "%zu more row%s left out.", left, left == 1 ? " is" : "s are");
}

void ls_section_predicted(ls_page *page, const ls_sources *sources)
{
	if (sources->forecast_count == 0)
		return;
	ls_page_heading(page, 2, "Predicted");
	ls_page_paragraph(page,
			  "Predicted by simulating the exchange's schedule, with the fastest size of buckets; "
			  "what was run of the same model, batch and links is in the row below. The error there is "
			  "that of the predicted rate: +10 %% is predicted faster than it was.");
	for (size_t i = 0; i < sources->forecast_count; i++) {
		ls_page_heading(page, 3, "%s, batch size = %" PRId64, sources->forecasts[i].model,
				sources->forecasts[i].batch);
		plot_forecast(page, sources, &sources->forecasts[i]);
		add_table(page, sources, &sources->forecasts[i]);
	}
	ls_page_legend(page);
}
