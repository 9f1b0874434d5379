/*
 * form_accuracy.c - time to accuracy: one row per seed, and the mean without the best and the worst.
 */
#include <inttypes.h>

#include "base/array.h"
#include "tools/report/form.h"
#include "tools/report/launches.h"
#include "tools/report/text.h"
#include "tools/results/target.h"

static const char *const heads[] = { "Seed", "Figure", "Target", "Epochs", "Time (s)", "Best accuracy" };

static void add_seed(const ls_study *study, ls_grid *grid, const ls_point *point, size_t i)
{
	const ls_point_launch *launch = &point->launches[i];
	double best = ls_target_best(point, i);

	ls_grid_add(grid, "%" PRId64, launch->seed);
	ls_grid_figure(grid, ls_point_figure(point));
	ls_grid_add(grid, "%s", launch->target_s > 0 ? "reached" : "not reached");
	if (launch->target_s > 0) {
		ls_grid_fixed(grid, launch->target_epochs, 2, "");
		ls_grid_fixed(grid, launch->target_s, 2, "");
	} else {
		ls_grid_add(grid, "more than %" PRId64, point->job.epochs);
		ls_grid_add(grid, "more than %.2f", launch->wall_s);
	}
	if (launch->busy)
		ls_grid_note(grid, ls_page_text(study->page,
						"the machine was busy: %.2f cores used by others, %.1f %% stolen",
						launch->load, 100 * launch->steal));
	ls_grid_fixed(grid, best, 4, "");
}

static void add_mean(ls_grid *grid, const ls_point *point, const ls_target_summary *s)
{
	ls_grid_add(grid, "mean*");
	ls_grid_figure(grid, ls_point_figure(point));
	ls_grid_add(grid, "%zu of %zu", s->reached, s->seeds);
	ls_grid_fixed(grid, s->epochs, 2, "");
	ls_grid_fixed(grid, s->seconds, 2, "");
	ls_grid_add(grid, "-");
	ls_grid_bold(grid);
}

/* Why there is a mean, or none. */
static void add_verdict(const ls_study *study, const ls_target_summary *s)
{
	if (s->seconds > 0)
		ls_page_paragraph(study->page, "* Mean without the best and the worst seed (MLPerf-style, unverified); "
					       "evaluations are on the clock.");
	else if (s->seeds < 3)
		ls_page_paragraph(study->page,
				  "No mean: %zu seed%s, and a mean without the best and the worst needs 3.", s->seeds,
				  s->seeds == 1 ? "" : "s");
	else
		ls_page_paragraph(study->page, "No mean: %zu of %zu seeds did not reach the target.",
				  s->seeds - s->reached, s->seeds);
}

static void add_point(const ls_study *study, const ls_point *point)
{
	ls_target_summary s;

	if (ls_target_summarize(point, &s) != LS_OK)
		return;
	ls_page_heading(study->page, 3, "%s on %s to a test accuracy of %g: %s device%s, batch %" PRId64 " per device",
			point->job.model, point->job.data, point->job.target, ls_point_shape(study->page, &point->job),
			point->job.devices == 1 ? "" : "s", point->job.batch);
	ls_grid *grid = ls_page_table(study->page, LS_COUNT(heads), heads);
	for (size_t i = 0; i < point->launch_count; i++)
		if (ls_target_counts(point, i))
			add_seed(study, grid, point, i);
	if (s.seconds > 0)
		add_mean(grid, point, &s);
	add_verdict(study, &s);
}

void ls_form_accuracy(const ls_study *study)
{
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++)
			if (study->lines[l].points[i]->job.target > 0 &&
			    !ls_study_seen(study, l, study->lines[l].points[i]))
				add_point(study, study->lines[l].points[i]);
}
