/*
 * figures_curves.c - loss, accuracy and rate of training over steps and epochs.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/report/figures.h"
#include "tools/report/text.h"

enum { MARKS_MAX = 400, CURVES_MAX = 12 };

typedef enum metric { LOSS, TEST_LOSS, ACCURACY, RATE } metric;

static const struct {
	const char *title, *x_name, *y_name;
	int by_epoch, from_zero;
	double y_most;
} metrics[] = {
	[LOSS] = { "Training loss", "step", "loss", 0, 0, 0 },
	[TEST_LOSS] = { "Test loss", "epoch", "loss", 1, 0, 0 },
	[ACCURACY] = { "Test accuracy", "epoch", "accuracy", 1, 0, 1 },
	[RATE] = { "Rate over the run", "step", "samples/s", 0, 1, 0 },
};

static size_t length_of(const ls_point *point, metric which)
{
	return metrics[which].by_epoch ? point->epoch_count : point->rate_count;
}

static double value_of(const ls_point *point, metric which, size_t i)
{
	switch (which) {
	case LOSS:
		return point->rates[i].loss;
	case TEST_LOSS:
		return point->epochs[i].test_loss;
	case ACCURACY:
		return point->epochs[i].accuracy;
	default:
		return point->rates[i].samples_per_s;
	}
}

static int has_values(const ls_point *point, metric which)
{
	size_t count = 0;
	for (size_t i = 0; i < length_of(point, which); i++)
		count += isfinite(value_of(point, which, i));
	return count > (metrics[which].by_epoch ? 0 : 1);
}

static void add_curve(const ls_study *study, ls_plot *plot, const char *name, const ls_point *point, metric which)
{
	ls_curve *curve = ls_plot_curve(plot, name, LS_CURVE_MEASURED);
	size_t length = length_of(point, which), stride = 1 + length / MARKS_MAX;
	char value[LS_NUMBER_TEXT];

	for (size_t i = 0; i < length; i++) {
		double y = value_of(point, which, i);
		int64_t x = metrics[which].by_epoch ? point->epochs[i].epoch + 1 : point->rates[i].step;
		if ((i % stride && i + 1 < length) || !isfinite(y))
			continue;
		ls_curve_add(curve, (double)x, y,
			     ls_page_text(study->page, "%s: %s %s at %s %" PRId64, name, metrics[which].y_name,
					  ls_number_text(value, y), metrics[which].x_name, x));
	}
}

/* Name of the point among those of its model: hosts where they differ, and the number of devices. */
static const char *name_of(const ls_study *study, const ls_line *line, const ls_point *point)
{
	const char *shape = ls_point_shape(study->page, &point->job);
	const char *hosts = ls_point_hosts(study->page, study->results, point);
	const char *where = study->by_host ? hosts : line->brief;
	if (study->runs)
		return ls_run_name(point);
	if (point->job.nodes == 1 || strchr(shape, '+'))
		return ls_page_text(study->page, "%s, %s dev.", where, shape);
	return ls_page_text(study->page, "%s, %" PRId64 "×%s dev.", where, point->job.nodes, shape);
}

static ls_plot *begin(const ls_study *study, metric which, const char *model, size_t part)
{
	ls_plot *plot = ls_page_plot(study->page);
	if (!plot)
		return NULL;
	plot->title = part ? ls_page_text(study->page, "%s of %s (%zu)", metrics[which].title, model, part + 1)
			   : ls_page_text(study->page, "%s of %s", metrics[which].title, model);
	plot->x_name = metrics[which].x_name;
	plot->y_name = metrics[which].y_name;
	plot->from_zero = metrics[which].from_zero;
	plot->y_most = metrics[which].y_most;
	plot->whole_x = 1;
	return plot;
}

static void plot_curve(const ls_study *study, metric which, const char *model)
{
	ls_plot *plot = NULL;
	size_t curves = 0;
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *point = study->lines[l].points[i];
			if (strcmp(point->job.model, model) != 0 || ls_study_seen(study, l, point) ||
			    !has_values(point, which))
				continue;
			if (curves % CURVES_MAX == 0)
				plot = begin(study, which, model, curves / CURVES_MAX);
			add_curve(study, plot, name_of(study, &study->lines[l], point), point, which);
			curves++;
		}
}

void ls_figures_curves(const ls_study *study)
{
	static const metric all[] = { LOSS, TEST_LOSS, ACCURACY, RATE };
	for (size_t l = 0; l < study->line_count; l++) {
		const char *model = study->lines[l].points[0]->job.model;
		size_t before = 0;
		while (before < l && strcmp(study->lines[before].points[0]->job.model, model) != 0)
			before++;
		for (size_t k = 0; before == l && k < sizeof(all) / sizeof(all[0]); k++) {
			if (!study->logs || (all[k] != TEST_LOSS && all[k] != ACCURACY))
				plot_curve(study, all[k], model);
			else if (all[k] == TEST_LOSS)
				ls_figures_runs(study, model);
		}
	}
}
