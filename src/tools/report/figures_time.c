/*
 * figures_time.c - time per step by part, for each point and each node, and the compute speed of each node.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "tools/report/figures.h"
#include "tools/report/text.h"

enum { BARS_MAX = 40 };

static ls_plot *begin(const ls_study *study, const char *title, const char *x_name, const char *unit)
{
	ls_plot *plot = ls_page_plot(study->page);
	if (!plot)
		return NULL;
	plot->title = title;
	plot->x_name = plot->y_name = x_name;
	plot->unit = unit;
	return plot;
}

static void name_parts(ls_plot *plot)
{
	static const char *const names[] = { "compute", "exposed communication", "waiting", "update and the rest" };
	if (plot)
		memcpy(plot->parts, names, sizeof(names));
}

/* "ps, 1gbit: 2 x 4". */
static const char *point_name(const ls_study *study, const ls_line *line, const ls_point *point)
{
	const char *shape = ls_point_shape(study->page, &point->job);
	if (strchr(shape, '+'))
		return ls_page_text(study->page, "%s: %s", line->label, shape);
	return ls_page_text(study->page, "%s: %" PRId64 " × %s", line->label, point->job.nodes, shape);
}

static int has_times(const ls_point *point)
{
	return point->compute_ms > 0;
}

static void plot_points(const ls_study *study)
{
	ls_plot *plot = NULL;
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *point = study->lines[l].points[i];
			double known = point->compute_ms + point->exposed_ms + point->wait_ms;
			double parts[LS_BAR_PARTS] = { point->compute_ms, point->exposed_ms, point->wait_ms,
						       fmax(0, point->step_ms - known) };
			if (!has_times(point) || ls_study_seen(study, l, point))
				continue;
			if (plot && plot->bar_count >= BARS_MAX)
				plot = NULL;
			if (!plot)
				name_parts(plot = begin(study, "Where a step's time goes (nodes × devices)",
							"ms per step", "ms"));
			ls_plot_bar(plot, point_name(study, &study->lines[l], point), parts);
		}
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void plot_nodes(const ls_study *study, const ls_line *line, const ls_point *point)
{
	ls_plot *plot = begin(study, ls_page_text(study->page, "By node: %s", point_name(study, line, point)),
			      "ms per step", "ms");
	name_parts(plot);
	for (size_t i = 0; i < point->node_count && i < BARS_MAX; i++) {
		const ls_point_node *node = &point->nodes[i];
		double known = node->compute_ms + node->exposed_ms + node->wait_ms;
		double parts[LS_BAR_PARTS] = { node->compute_ms, node->exposed_ms, node->wait_ms,
					       fmax(0, point->step_ms - known) };
		ls_plot_bar(plot, ls_page_text(study->page, "%s%s", node->host, node->devices ? "" : " (server)"),
			    parts);
	}
}

/* The point with most nodes of a line. */
static const ls_point *widest(const ls_line *line)
{
	const ls_point *found = NULL;
	for (size_t i = 0; i < line->count; i++) {
		const ls_point *point = line->points[i];
		if (point->node_count > 1 && point->nodes[0].compute_ms > 0 &&
		    (!found || point->node_count >= found->node_count))
			found = point;
	}
	return found;
}

/* Samples per second of a node's devices while they compute, as if every device had one batch per step. */
static void plot_speeds(const ls_study *study, const ls_line *line, const ls_point *point)
{
	ls_plot *plot =
		begin(study, ls_page_text(study->page, "Speed of each node: %s", point_name(study, line, point)),
		      "samples/s of its devices while they compute, at equal shares", "samples/s");
	if (plot)
		plot->parts[0] = "speed";
	for (size_t i = 0; i < point->node_count && i < BARS_MAX; i++) {
		const ls_point_node *node = &point->nodes[i];
		double work = 1e3 * (double)(point->job.batch * node->devices);
		double parts[LS_BAR_PARTS] = { node->compute_ms > 0 ? work / node->compute_ms : 0 };
		if (parts[0] > 0)
			ls_plot_bar(plot,
				    ls_page_text(study->page, "%s, %" PRId64 " device%s", node->host, node->devices,
						 ls_plural((uint64_t)node->devices, "s")),
				    parts);
	}
}

static int is_single(const ls_point *point)
{
	return point->state == LS_POINT_DONE && point->job.nodes == 1 && point->job.devices == 1 &&
	       point->node_count == 1;
}

static int hosts_differ(const ls_results *results)
{
	const ls_point *first = NULL;
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (!is_single(point))
			continue;
		if (first && strcmp(first->nodes[0].host, point->nodes[0].host) != 0)
			return 1;
		first = first ? first : point;
	}
	return 0;
}

/* One device of each host, where several hosts were measured separately. */
static void plot_hosts(const ls_study *study)
{
	const ls_results *results = study->results;
	if (!hosts_differ(results))
		return;
	ls_plot *plot = begin(study, "Speed of one device of each node", "samples/s", "samples/s");
	if (plot)
		plot->parts[0] = "speed";
	for (size_t i = 0; plot && i < results->point_count && plot->bar_count < BARS_MAX; i++) {
		const ls_point *point = &results->points[i];
		double parts[LS_BAR_PARTS] = { point->samples_per_s };
		if (is_single(point))
			ls_plot_bar(plot,
				    ls_page_text(study->page, "%s%s%s%s%s", point->nodes[0].host,
						 study->several_models ? ", " : "",
						 study->several_models ? point->job.model : "",
						 ls_point_figure(point) == LS_FIGURE_MEASURED ? "" : ", ",
						 ls_point_figure(point) == LS_FIGURE_MEASURED
							 ? ""
							 : ls_figure_name(ls_point_figure(point))),
				    parts);
	}
}

/* Of lines that differ only in batch, the first is shown. */
static int was_shown(const ls_study *study, size_t line, const ls_point *point)
{
	for (size_t l = 0; l < line; l++) {
		const ls_point *other = widest(&study->lines[l]);
		if (other && !strcmp(other->job.model, point->job.model) && !strcmp(other->job.rate, point->job.rate) &&
		    !strcmp(other->job.strategy, point->job.strategy) && !strcmp(other->job.shape, point->job.shape) &&
		    !strcmp(other->nodes[0].host, point->nodes[0].host))
			return 1;
	}
	return 0;
}

void ls_figures_time(const ls_study *study)
{
	plot_points(study);
	for (size_t l = 0; l < study->line_count; l++) {
		const ls_point *point = widest(&study->lines[l]);
		if (!point || was_shown(study, l, point))
			continue;
		plot_nodes(study, &study->lines[l], point);
		plot_speeds(study, &study->lines[l], point);
	}
	plot_hosts(study);
}
