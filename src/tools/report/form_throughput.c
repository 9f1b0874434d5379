/*
 * form_throughput.c - a pair of tables per line: medians with speedups, and every repeat.
 */
#include <inttypes.h>

#include "tools/report/form.h"
#include "tools/report/text.h"

static void add_place(const ls_study *study, ls_grid *grid, const ls_point *point)
{
	ls_grid_add(grid, "%" PRId64, point->job.nodes);
	ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
	ls_grid_add(grid, "%" PRId64, point->job.batch);
}

static void add_medians(const ls_study *study, const ls_line *line)
{
	static const char *const heads[] = { "Nodes", "Devices per node", "Batch per device", "Samples/s", "Speedup" };
	ls_grid *grid = ls_page_table(study->page, 5, heads);
	for (size_t i = 0; i < line->count; i++) {
		const ls_point *point = line->points[i];
		add_place(study, grid, point);
		ls_grid_add(grid, "%.*f%s", point->samples_per_s < 10 ? 3 : 1, point->samples_per_s,
			    ls_point_star(point));
		ls_grid_fixed(grid, ls_study_speedup(study, point), 2, "");
		ls_grid_note(grid, ls_study_flag(study, point));
	}
}

static void add_repeats(const ls_study *study, const ls_line *line)
{
	static const char *const heads[] = { "Nodes", "Devices per node", "Batch per device", "Samples/s" };
	ls_grid *grid = ls_page_table(study->page, 4, heads);
	if (grid)
		grid->summary = "All repeats";
	for (size_t i = 0; i < line->count; i++)
		for (size_t k = 0; k < line->points[i]->repeat_count; k++) {
			double rate = line->points[i]->repeats[k].samples_per_s;
			add_place(study, grid, line->points[i]);
			ls_grid_add(grid, "%.*f", rate < 10 ? 3 : 1, rate);
		}
}

void ls_form_throughput(const ls_study *study)
{
	ls_page_paragraph(study->page,
			  "Samples/s are those of all devices together: medians of repeats, warm-up excluded.");
	for (size_t i = 0; i < study->line_count; i++) {
		ls_page_heading(study->page, 3, "%s", study->lines[i].heading);
		add_medians(study, &study->lines[i]);
		add_repeats(study, &study->lines[i]);
	}
}
