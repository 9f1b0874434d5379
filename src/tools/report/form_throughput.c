/*
 * form_throughput.c - a pair of tables per line: medians with speedups, and every repeat.
 */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/form.h"
#include "tools/report/launches.h"
#include "tools/report/text.h"

#define PLACE_HEADS "Nodes", "Devices per node", "Batch per device", "Figure"
static const char *const heads[] = { PLACE_HEADS, "Samples/s", "Speedup", LS_LAUNCH_HEADS };
static const char *const repeat_heads[] = { PLACE_HEADS, LS_REPEAT_HEADS };

static void add_place(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	ls_grid_add(grid, "%" PRId64, point->job.nodes);
	ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
	ls_grid_add(grid, "%" PRId64, point->job.batch);
	ls_grid_figure(grid, ls_point_figure(point));
}

static void add_medians(const ls_study *study, ls_grid *grid, const ls_line *line)
{
	for (size_t i = 0; i < line->count; i++) {
		const ls_point *point = line->points[i];
		add_place(study, grid, point);
		ls_grid_add(grid, "%.*f", point->samples_per_s < 10 ? 3 : 1, point->samples_per_s);
		ls_grid_fixed(grid, ls_study_speedup(study, point), 2, "");
		ls_grid_note(grid, ls_study_flag(study, point));
		ls_grid_launches(grid, point);
	}
}

static void add_repeats(const ls_study *study, ls_grid *grid, const ls_line *line)
{
	for (size_t i = 0; i < line->count; i++)
		ls_grid_repeats(study, grid, line->points[i], add_place);
}

static int begins_heading(const ls_study *study, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (!strcmp(study->lines[i].heading, study->lines[at].heading))
			return 0;
	return 1;
}

typedef void add_line_fn(const ls_study *study, ls_grid *grid, const ls_line *line);

/* All lines with one heading, measured ones first: each kind of figure with its own baseline. */
static void add_lines(const ls_study *study, ls_grid *grid, const char *heading, add_line_fn *add)
{
	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
		for (size_t i = 0; i < study->line_count; i++)
			if ((int)study->lines[i].figure == kind && !strcmp(study->lines[i].heading, heading))
				add(study, grid, &study->lines[i]);
}

void ls_form_throughput(const ls_study *study)
{
	ls_page_paragraph(
		study->page,
		"Samples/s are those of all devices together: medians of repeats, warm-up excluded. A spread is "
		"(maximum - minimum) / median: of the repeats within a launch, and of the medians between launches.");
	for (size_t i = 0; i < study->line_count; i++) {
		const char *heading = study->lines[i].heading;
		if (!begins_heading(study, i))
			continue;
		ls_page_heading(study->page, 3, "%s", heading);
		ls_grid *medians = ls_page_table(study->page, LS_COUNT(heads), heads);
		add_lines(study, medians, heading, add_medians);
		ls_grid_drop_empty(medians);
		ls_grid *repeats = ls_page_table(study->page, LS_COUNT(repeat_heads), repeat_heads);
		if (repeats)
			repeats->summary = "All repeats";
		add_lines(study, repeats, heading, add_repeats);
		ls_grid_drop_empty(repeats);
	}
}
