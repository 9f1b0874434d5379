/*
 * form_strategies.c - strategies against each other and against ideal: baselines, then a table for every model and kind
 * of link with columns for each strategy, then all models by number of nodes.
 */
#include <inttypes.h>
#include <lockstep/train.h>
#include <string.h>

#include "base/names.h"
#include "tools/report/form.h"
#include "tools/report/launches.h"
#include "tools/report/text.h"

enum { MODELS_MAX = LS_GRID_COLUMNS - 2, NODES_MAX = (LS_GRID_COLUMNS - 2) / 2, PLACES_MAX = 64 };

/* Columns of the table of a setting: Nodes, Devices and Figure, a rate for each strategy, Ideal, a
 * speedup for each strategy. */
enum { STRATEGIES_MAX = (LS_GRID_COLUMNS - 4) / 2 };

static size_t count_strategies(void)
{
	size_t count = 0;
	while (count < STRATEGIES_MAX && ls_strategy_at(count))
		count++;
	return count;
}

/* The strategy of a point, as a row of their table; points of one node are where allreduce, the first row, begins. At
 * least count_strategies(): one that has no column. */
static size_t strategy_of(const ls_point *point)
{
	size_t row = 0;
	while (ls_strategy_at(row) && strcmp(ls_strategy_at(row)->name, point->job.strategy) != 0)
		row++;
	return strcmp(point->job.strategy, "local") ? row : 0;
}

static const char *unit_of(const ls_study *study, const ls_point *point)
{
	return ls_study_reads(study, point) ? "tokens/s" : "samples/s";
}

/* One point per model, in the order of the sweep. */
static size_t list_models(const ls_study *study, const ls_point *models[MODELS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		int seen = point->state != LS_POINT_DONE;
		for (size_t k = 0; k < count && !seen; k++)
			seen = !strcmp(models[k]->job.model, point->job.model);
		if (!seen && count < MODELS_MAX)
			models[count++] = point;
	}
	return count;
}

/* ---- baselines --------------------------------------------------------------------------------------------------- */

static int same_baseline(const ls_study *study, const ls_point *a, const ls_point *b)
{
	return ls_point_figure(a) == ls_point_figure(b) &&
	       !strcmp(ls_point_host(study->results, a), ls_point_host(study->results, b));
}

/* The baseline on the host of `like`, a figure of the same kind. */
static const ls_point *baseline_on(const ls_study *study, const char *model, const ls_point *like)
{
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		if (ls_study_base(study, point) == point && !strcmp(point->job.model, model) &&
		    same_baseline(study, point, like))
			return point;
	}
	return NULL;
}

static int begins_host(const ls_study *study, size_t at)
{
	const ls_point *points = study->results->points;
	for (size_t i = 0; i < at; i++)
		if (points[i].state == LS_POINT_DONE && ls_study_base(study, &points[i]) == &points[i] &&
		    same_baseline(study, &points[i], &points[at]))
			return 0;
	return ls_study_base(study, &points[at]) == &points[at];
}

static void add_baselines(const ls_study *study, const ls_point *const *models, size_t count)
{
	const char *heads[LS_GRID_COLUMNS] = { "", "Figure" };
	for (size_t k = 0; k < count; k++)
		heads[k + 2] = ls_page_text(study->page, "%s (%s)", models[k]->job.model, unit_of(study, models[k]));
	ls_page_heading(study->page, 3, "Baseline: one device");
	ls_grid *grid = ls_page_table(study->page, count + 2, heads);
	if (grid)
		grid->text_columns = 1;
	for (size_t i = 0; i < study->results->point_count; i++) {
		if (!begins_host(study, i))
			continue;
		const ls_point *first = &study->results->points[i];
		ls_grid_add(grid, "%s", ls_point_host(study->results, first));
		ls_grid_figure(grid, ls_point_figure(first));
		for (size_t k = 0; k < count; k++) {
			const ls_point *base = baseline_on(study, models[k]->job.model, first);
			ls_grid_number(grid, base ? ls_study_words(study, base) : 0);
		}
	}
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* A setting is one node, or several over links of one rate and one wire. */
static int same_setting(const ls_point *a, const ls_point *b)
{
	return !strcmp(a->job.model, b->job.model) && a->job.batch == b->job.batch &&
	       (a->job.nodes > 1) == (b->job.nodes > 1) &&
	       (a->job.nodes == 1 || (!strcmp(a->job.rate, b->job.rate) && !strcmp(a->job.wire, b->job.wire)));
}

static int same_place(const ls_point *a, const ls_point *b)
{
	return a->job.devices == b->job.devices && a->job.nodes == b->job.nodes &&
	       ls_point_figure(a) == ls_point_figure(b);
}

static int begins_setting(const ls_results *results, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (results->points[i].state == LS_POINT_DONE &&
		    same_setting(&results->points[i], &results->points[at]))
			return 0;
	return results->points[at].state == LS_POINT_DONE;
}

/* A row of a setting: figures of one kind, one per strategy. */
typedef struct place {
	const ls_point *any, *of[STRATEGIES_MAX];
} place;

static size_t list_places(const ls_study *study, const ls_point *first, ls_figure kind, place places[PLACES_MAX],
			  size_t count)
{
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		size_t k = 0;
		if (point->state != LS_POINT_DONE || ls_point_figure(point) != kind || !same_setting(point, first))
			continue;
		while (k < count && !same_place(places[k].any, point))
			k++;
		if (k == PLACES_MAX)
			continue;
		if (k == count)
			places[count++] = (place){ .any = point };
		if (strategy_of(point) < count_strategies())
			places[k].of[strategy_of(point)] = point;
	}
	return count;
}

static const char *both(ls_page *page, const char *a, const char *b)
{
	return a && b ? ls_page_text(page, "%s Also, %s", a, b) : a ? a : b;
}

static void add_rate(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	char text[LS_NUMBER_TEXT];
	if (point)
		ls_grid_add(grid, "%s", ls_number_text(text, ls_study_words(study, point)));
	else
		ls_grid_add(grid, "-");
	ls_grid_note(grid,
		     point ? both(study->page, ls_study_flag(study, point), ls_point_launch_note(study->page, point))
			   : NULL);
}

static void add_times(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	ls_grid_fixed(grid, point ? ls_study_speedup(study, point) : 0, 2, "");
}

static void add_setting(const ls_study *study, const ls_point *first)
{
	size_t strategies = count_strategies();
	const char *heads[LS_GRID_COLUMNS] = { "Nodes", "Devices", "Figure" };
	place places[PLACES_MAX];
	size_t count = 0;
	int64_t devices = 1, nodes = 1;

	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
		count = list_places(study, first, (ls_figure)kind, places, count);
	for (size_t i = 0; i < count; i++) {
		devices = places[i].any->job.devices > devices ? places[i].any->job.devices : devices;
		nodes = places[i].any->job.nodes > nodes ? places[i].any->job.nodes : nodes;
	}
	ls_page_heading(study->page, 3, "%s%" PRId64 " node%s, up to %" PRId64 " device%s%s%s: %s (%s)",
			nodes > 1 ? "Up to " : "", nodes, ls_plural((uint64_t)nodes, "s"), devices,
			ls_plural((uint64_t)devices, "s"), nodes > 1 ? ", " : "", nodes > 1 ? first->job.rate : "",
			first->job.model, unit_of(study, first));
	heads[3 + strategies] = "Ideal";
	for (size_t k = 0; k < strategies; k++) {
		heads[3 + k] = ls_strategy_at(k)->title;
		heads[4 + strategies + k] = ls_page_text(study->page, "%s speedup", ls_strategy_at(k)->title);
	}
	ls_grid *grid = ls_page_table(study->page, 4 + 2 * strategies, heads);
	for (size_t i = 0; i < count; i++) {
		const ls_point *base = ls_study_base(study, places[i].any);
		ls_grid_add(grid, "%" PRId64, places[i].any->job.nodes);
		ls_grid_add(grid, "%" PRId64, places[i].any->job.devices);
		ls_grid_figure(grid, ls_point_figure(places[i].any));
		for (size_t k = 0; k < strategies; k++)
			add_rate(study, grid, places[i].of[k]);
		ls_grid_number(grid, base ? ls_study_words(study, base) * (double)places[i].any->job.devices : 0);
		for (size_t k = 0; k < strategies; k++)
			add_times(study, grid, places[i].of[k]);
	}
	ls_grid_drop_empty(grid);
}

/* ---- all models by nodes ----------------------------------------------------------------------------------------- */

/* The fastest point of allreduce of a model on `nodes` nodes, among figures of one kind. */
static const ls_point *best_on(const ls_study *study, const char *model, int64_t nodes, ls_figure kind)
{
	const ls_point *best = NULL;
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		if (point->state == LS_POINT_DONE && point->job.nodes == nodes && strategy_of(point) == 0 &&
		    ls_point_figure(point) == kind && !strcmp(point->job.model, model) &&
		    (!best || ls_study_words(study, point) > ls_study_words(study, best)))
			best = point;
	}
	return best;
}

static size_t list_nodes(const ls_study *study, int64_t nodes[NODES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		int seen = point->state != LS_POINT_DONE || point->job.nodes < 2 || strategy_of(point) != 0;
		for (size_t k = 0; k < count && !seen; k++)
			seen = nodes[k] == point->job.nodes;
		if (!seen && count < NODES_MAX)
			nodes[count++] = point->job.nodes;
	}
	return count;
}

static void add_model(const ls_study *study, ls_grid *grid, const char *model, ls_figure kind, const int64_t *nodes,
		      size_t columns)
{
	int any = 0;
	for (size_t k = 0; k < columns; k++)
		any |= best_on(study, model, nodes[k], kind) != NULL;
	if (!any)
		return;
	ls_grid_add(grid, "%s", model);
	ls_grid_figure(grid, kind);
	for (size_t k = 0; k < columns; k++) {
		const ls_point *best = best_on(study, model, nodes[k], kind);
		add_rate(study, grid, best);
		add_times(study, grid, best);
	}
}

static void add_scalability(const ls_study *study, const ls_point *const *models, size_t count)
{
	const char *heads[LS_GRID_COLUMNS] = { "", "Figure" };
	int64_t nodes[NODES_MAX];
	size_t columns = list_nodes(study, nodes);

	for (size_t k = 0; k < columns; k++) {
		heads[2 * k + 2] =
			ls_page_text(study->page, "%" PRId64 " node%s", nodes[k], ls_plural((uint64_t)nodes[k], "s"));
		heads[2 * k + 3] = "Speedup";
	}
	if (columns == 0)
		return;
	ls_page_heading(study->page, 3, "%s by number of nodes, the fastest of each", ls_strategy_at(0)->title);
	ls_grid *grid = ls_page_table(study->page, 2 * columns + 2, heads);
	if (grid)
		grid->text_columns = 1;
	for (size_t m = 0; m < count; m++)
		for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
			add_model(study, grid, models[m]->job.model, (ls_figure)kind, nodes, columns);
}

void ls_form_strategies(const ls_study *study)
{
	const ls_point *models[MODELS_MAX];
	size_t count = list_models(study, models);

	if (count == 0)
		return;
	add_baselines(study, models, count);
	for (size_t i = 0; i < study->results->point_count; i++)
		if (begins_setting(study->results, i))
			add_setting(study, &study->results->points[i]);
	add_scalability(study, models, count);
	ls_form_launches(study);
}
