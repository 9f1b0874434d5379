/*
 * figures_target.c - test accuracy over time, a curve for every seed, and the target.
 */
#include <inttypes.h>
#include <math.h>

#include "tools/report/figures.h"
#include "tools/report/text.h"
#include "tools/results/target.h"

enum { SEEDS_MAX = 12 }; /* that one plot shows */

static double plot_seed(const ls_study *study, ls_plot *plot, const ls_point *point, size_t launch)
{
	const char *name = ls_page_text(study->page, "seed %" PRId64, point->launches[launch].seed);
	ls_curve *curve = ls_plot_curve(plot, name, LS_CURVE_MEASURED);
	double last = 0;

	for (size_t i = 0; i < point->test_count; i++) {
		const ls_point_test *test = &point->tests[i];
		if (test->launch != (int64_t)launch)
			continue;
		ls_curve_add(curve, test->elapsed_s, test->accuracy,
			     ls_page_text(study->page, "%s: %.4f after %.1f s, %g epochs", name, test->accuracy,
					  test->elapsed_s, test->epochs));
		last = fmax(last, test->elapsed_s);
	}
	return last;
}

static void plot_point(const ls_study *study, const ls_point *point)
{
	ls_plot *plot = ls_page_plot(study->page);
	double last = 0;
	size_t seeds = 0;

	if (!plot)
		return;
	plot->title = ls_page_text(study->page, "%s on %s: test accuracy over time", point->job.model, point->job.data);
	plot->x_name = "seconds";
	plot->y_name = "accuracy";
	plot->y_most = 1;
	for (size_t i = 0; i < point->launch_count; i++)
		if (ls_target_counts(point, i) && seeds++ < SEEDS_MAX)
			last = fmax(last, plot_seed(study, plot, point, i));
	ls_curve *target = ls_plot_curve(plot, "target", LS_CURVE_IDEAL);
	ls_curve_add(target, 0, point->job.target, "target");
	ls_curve_add(target, last, point->job.target, "target");
}

void ls_figures_target(const ls_study *study)
{
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *point = study->lines[l].points[i];
			if (point->job.target > 0 && point->test_count > 0 && !ls_study_seen(study, l, point))
				plot_point(study, point);
		}
}
