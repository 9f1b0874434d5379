#include "tools/report/launches.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/variant.h"

/* Launches that were asked for: not those that repeat a busy one. */
static size_t launches_asked(const ls_point *point)
{
	size_t count = 0;
	for (size_t k = 0; k < point->launch_count; k++)
		count += !point->launches[k].again;
	return count;
}

static int is_replaced(const ls_point *point, size_t launch)
{
	return launch + 1 < point->launch_count && point->launches[launch + 1].again &&
	       point->launches[launch + 1].reason[0] == '\0';
}

static const char *launch_text(ls_page *page, const ls_point *point, size_t k)
{
	const ls_point_launch *l = &point->launches[k];
	if (l->reason[0])
		return ls_page_text(page, "launch %zu failed: %s", k + 1, l->reason);
	if (l->busy && !point->busy)
		return ls_page_text(page, "launch %zu ran on a busy machine%s", k + 1,
				    is_replaced(point, k) ? " and was repeated" : "");
	return NULL;
}

const char *ls_point_launch_note(ls_page *page, const ls_point *point)
{
	const char *all = NULL;
	for (size_t k = 0; k < point->launch_count; k++) {
		const char *one = launch_text(page, point, k);
		if (one)
			all = all ? ls_page_text(page, "%s; %s", all, one) : one;
	}
	if (!all && !point->busy)
		return NULL;
	return ls_page_text(page, "%s%s%s.", all ? all : "", all && point->busy ? "; " : "",
			    point->busy
				    ? "the machine was busy in every launch (load and steal are in the table of all "
				      "repeats)"
				    : "");
}

static size_t repeats_of(const ls_point *point, size_t launch)
{
	size_t count = 0;
	for (size_t i = 0; i < point->repeat_count; i++)
		count += point->launch_count == 0 || point->repeats[i].launch == (int64_t)launch;
	return count;
}

static int repeats_in_launch(const ls_point *point)
{
	for (size_t k = 0; k < point->launch_count || k == 0; k++)
		if (repeats_of(point, k) > 1)
			return 1;
	return 0;
}

static void add_spread(ls_grid *grid, int several, double spread)
{
	if (several)
		ls_grid_add(grid, "%.1f %%", 100 * spread);
	else
		ls_grid_add(grid, "-");
}

void ls_grid_launches(ls_grid *grid, const ls_point *point)
{
	size_t asked = launches_asked(point), done = ls_point_launches_done(point);
	if (point->launch_count == 0)
		ls_grid_add(grid, "-");
	else if (done == asked)
		ls_grid_add(grid, "%zu", done);
	else
		ls_grid_add(grid, "%zu of %zu", done, asked);
	if (grid)
		ls_grid_note(grid, ls_point_launch_note(grid->page, point));
	add_spread(grid, repeats_in_launch(point), point->spread_within);
	add_spread(grid, point->launch_count > 0 && done > 1, point->spread_between);
}

int ls_point_repeat_counts(const ls_point *point, size_t repeat)
{
	return point->launch_count == 0 || point->busy || !point->launches[point->repeats[repeat].launch].busy;
}

/* ---- repeats ----------------------------------------------------------------------------------------------------- */

static void add_rate(ls_grid *grid, double rate)
{
	ls_grid_fixed(grid, rate, rate < 10 ? 3 : 1, "");
}

/* The cells of a row behind its rate; files before version 3 have no launches. */
static void add_state(ls_grid *grid, const ls_point *point, size_t launch)
{
	if (point->launch_count == 0) {
		for (int i = 0; i < 3; i++)
			ls_grid_add(grid, "-");
		return;
	}
	const ls_point_launch *l = &point->launches[launch];
	ls_grid_add(grid, "%.2f", l->load);
	ls_grid_add(grid, "%.1f %%", 100 * l->steal);
	ls_grid_add(grid, "%s",
		    l->reason[0]                 ? "failed"
		    : is_replaced(point, launch) ? "busy, repeated"
		    : l->busy                    ? "busy"
						 : "quiet");
	if (grid && l->reason[0])
		ls_grid_note(grid, launch_text(grid->page, point, launch));
}

void ls_grid_repeats(const ls_study *study, ls_grid *grid, const ls_point *point, ls_place_fn *place)
{
	for (size_t k = 0; k < point->launch_count || k == 0; k++) {
		int failed = point->launch_count > 0 && point->launches[k].reason[0] != '\0';
		for (size_t i = 0; i < point->repeat_count + (size_t)failed; i++) {
			int is_row = i == point->repeat_count || point->launch_count == 0 ||
				     point->repeats[i].launch == (int64_t)k;
			if (!is_row)
				continue;
			place(study, grid, point);
			if (point->launch_count > 0)
				ls_grid_add(grid, "%zu", k + 1);
			else
				ls_grid_add(grid, "-");
			add_rate(grid, i < point->repeat_count ? point->repeats[i].samples_per_s : 0);
			add_state(grid, point, k);
		}
	}
}

/* ---- forms whose rows are not points ----------------------------------------------------------------------------- */

static void add_place(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	ls_grid_add(grid, "%s", ls_variant_model(study->page, study->results, point));
	ls_grid_add(grid, "%s", strcmp(point->job.strategy, "local") ? ls_strategy_title(point->job.strategy) : "-");
	ls_grid_add(grid, "%s", point->job.rate[0] ? point->job.rate : "-");
	ls_grid_add(grid, "%s", ls_point_hosts(study->page, study->results, point));
	ls_grid_add(grid, "%" PRId64, point->job.nodes);
	ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
	ls_grid_add(grid, "%" PRId64, point->job.batch);
	ls_grid_figure(grid, ls_point_figure(point));
}
#define PLACE_HEADS "Model", "Strategy", "Link", "Hosts", "Nodes", "Devices per node", "Batch per device", "Figure"
enum { PLACE_TEXTS = 4 };

typedef void add_point_fn(const ls_study *study, ls_grid *grid, const ls_point *point);

static void add_launches(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	add_place(study, grid, point);
	ls_grid_launches(grid, point);
}

static void add_repeats(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	ls_grid_repeats(study, grid, point, add_place);
}

static void add_points(const ls_study *study, ls_grid *grid, add_point_fn *add)
{
	if (grid)
		grid->text_columns = PLACE_TEXTS;
	for (size_t i = 0; i < study->results->point_count; i++)
		if (study->results->points[i].state == LS_POINT_DONE)
			add(study, grid, &study->results->points[i]);
	ls_grid_drop_empty(grid);
}

static int says_launches(const ls_study *study)
{
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_point *point = &study->results->points[i];
		if (point->state == LS_POINT_DONE &&
		    (launches_asked(point) > 1 || ls_point_launch_note(study->page, point)))
			return 1;
	}
	return 0;
}

static int says_repeats(const ls_study *study)
{
	for (size_t i = 0; i < study->results->point_count; i++)
		if (study->results->points[i].state == LS_POINT_DONE && study->results->points[i].repeat_count > 1)
			return 1;
	return says_launches(study);
}

void ls_form_repeats(const ls_study *study)
{
	static const char *const heads[] = { PLACE_HEADS, LS_REPEAT_HEADS };
	if (!says_repeats(study))
		return;
	ls_grid *grid = ls_page_table(study->page, LS_COUNT(heads), heads);
	if (grid)
		grid->summary = "All repeats";
	add_points(study, grid, add_repeats);
}

void ls_form_launches(const ls_study *study)
{
	static const char *const heads[] = { PLACE_HEADS, LS_LAUNCH_HEADS };
	if (says_launches(study)) {
		ls_page_heading(study->page, 3, "Launches");
		add_points(study, ls_page_table(study->page, LS_COUNT(heads), heads), add_launches);
	}
	ls_form_repeats(study);
}
