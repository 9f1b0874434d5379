/*
 * section_classes.c - the test metrics of runs that were evaluated with --save: scores per
 * class, and what is taken for what.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "tools/report/sections.h"

enum { HEAT_MOST = 20, CONFUSIONS = 10, OPEN_ROWS = 40 };

static void introduce(ls_page *page, const char *run, const ls_class_metrics *m)
{
	const char *text =
		ls_page_text(page, "%" PRId64 " sample%s%s%s: loss %.4f", m->samples,
			     ls_plural((uint64_t)m->samples, "s"), m->data[0] ? " of " : "", m->data, m->loss);

	ls_page_heading(page, 3, "%s: test metrics", run);
	if (isfinite(m->accuracy))
		text = ls_page_text(page, "%s, accuracy %.4f", text, m->accuracy);
	if (m->count > (size_t)m->top && isfinite(m->top_accuracy))
		text = ls_page_text(page, "%s, top-%" PRId64 " accuracy %.4f", text, m->top, m->top_accuracy);
	if (isfinite(m->perplexity) && m->perplexity > 0)
		text = ls_page_text(page, "%s, perplexity %.2f", text, m->perplexity);
	if (isfinite(m->r2))
		text = ls_page_text(page, "%s, MAE %.6g, RMSE %.6g, R2 %.4f", text, m->mae, m->rmse, m->r2);
	if (isfinite(m->macro_f1))
		text = ls_page_text(page, "%s, micro F1 %.4f, macro F1 %.4f", text, m->micro_f1, m->macro_f1);
	ls_page_paragraph(page, "%s%s%s.", text, m->fingerprint[0] ? "; weights xxh64 " : "", m->fingerprint);
}

static void draw_matrix(ls_page *page, const char *run, const ls_class_metrics *m)
{
	ls_heat *heat = ls_page_alloc(page, sizeof(*heat));
	const char **names = ls_page_alloc(page, m->count * sizeof(*names));
	ls_plot *plot = heat && names ? ls_page_plot(page) : NULL;

	if (!plot)
		return;
	for (size_t i = 0; i < m->count; i++) {
		char number[32];
		snprintf(number, sizeof(number), "%zu", i);
		names[i] = strcmp(m->classes[i].name, number) ? ls_page_text(page, "%zu %s", i, m->classes[i].name)
							      : ls_page_text(page, "%zu", i);
	}
	*heat = (ls_heat){ .count = m->count, .names = names, .cells = m->confusion };
	plot->heat = heat;
	plot->title = ls_page_text(page, "Confusion matrix of %s", run);
	plot->x_name = "prediction";
	plot->y_name = "label";
}

typedef struct confusion {
	size_t label, prediction;
	int64_t samples;
} confusion;

/* The larger first; of equal ones, the first in the matrix. */
static int by_samples(const void *a, const void *b)
{
	const confusion *left = a, *right = b;

	if (left->samples != right->samples)
		return left->samples < right->samples ? 1 : -1;
	if (left->label != right->label)
		return left->label > right->label ? 1 : -1;
	return (left->prediction > right->prediction) - (left->prediction < right->prediction);
}

static size_t collect(const ls_class_metrics *m, confusion *out)
{
	size_t count = 0;
	for (size_t i = 0; i < m->count; i++)
		for (size_t k = 0; k < m->count; k++)
			if (i != k && m->confusion[i * m->count + k] > 0)
				out[count++] = (confusion){ i, k, m->confusion[i * m->count + k] };
	return count;
}

static void list_confusions(ls_page *page, const ls_class_metrics *m)
{
	static const char *const heads[] = { "Label", "Predicted as", "Samples", "Of the label" };
	confusion *list = calloc(m->count * m->count, sizeof(*list));
	size_t count = list ? collect(m, list) : 0;

	if (!list)
		page->failed = 1;
	if (count == 0) {
		free(list);
		return;
	}
	qsort(list, count, sizeof(*list), by_samples);
	ls_page_paragraph(page, "Taken for another class most often:");
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);
	if (grid)
		grid->text_columns = 2;
	for (size_t i = 0; i < count && i < CONFUSIONS; i++) {
		const ls_class_row *label = &m->classes[list[i].label];
		ls_grid_add(grid, "%s", label->name);
		ls_grid_add(grid, "%s", m->classes[list[i].prediction].name);
		ls_grid_add(grid, "%" PRId64, list[i].samples);
		ls_grid_add(grid, "%.1f %%",
			    100 * (double)list[i].samples / (double)(label->support > 0 ? label->support : 1));
	}
	free(list);
}

/* Whether anything is labelled or predicted as this class. Others do not count in means, as in `lockstep eval`. */
static int is_met(const ls_class_metrics *m, size_t class)
{
	int64_t samples = m->classes[class].support;

	for (size_t label = 0; label < m->count; label++)
		samples += m->confusion[label * m->count + class];
	return samples > 0;
}

static void list_classes(ls_page *page, const ls_class_metrics *m)
{
	static const char *const heads[] = { "Class", "Samples", "Precision", "Recall", "F1" };
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);
	double sums[3] = { 0 };
	size_t met = 0;

	if (grid) {
		grid->text_columns = 1;
		if (m->count > OPEN_ROWS)
			grid->summary = ls_page_text(page, "Precision, recall and F1 of %zu classes", m->count);
	}
	for (size_t i = 0; i < m->count; i++) {
		const ls_class_row *row = &m->classes[i];
		ls_grid_add(grid, "%s", row->name);
		ls_grid_add(grid, "%" PRId64, row->support);
		ls_grid_add(grid, "%.4f", row->precision);
		ls_grid_add(grid, "%.4f", row->recall);
		ls_grid_add(grid, "%.4f", row->f1);
		sums[0] += row->precision;
		sums[1] += row->recall;
		sums[2] += row->f1;
		met += (size_t)is_met(m, i);
	}
	ls_grid_add(grid, "mean");
	ls_grid_add(grid, "%" PRId64, m->samples);
	for (int i = 0; i < 3; i++)
		ls_grid_add(grid, "%.4f", met > 0 ? sums[i] / (double)met : 0);
	ls_grid_bold(grid);
}

void ls_section_classes(ls_page *page, const ls_study *study)
{
	int found = 0;

	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_class_metrics *m = &study->logs[i].classes;
		const char *run = ls_run_name(&study->results->points[i]);
		if (m->samples == 0)
			continue;
		found = 1;
		introduce(page, run, m);
		if (m->count == 0)
			continue;
		if (m->count <= HEAT_MOST)
			draw_matrix(page, run, m);
		list_confusions(page, m);
		list_classes(page, m);
	}
	if (!found)
		ls_page_paragraph(
			page, "After lockstep eval RUN --save this page has the test metrics of the run: scores per "
			      "class and the confusion matrix.");
}
