/*
 * figures_runs.c - how runs learned: loss and accuracy on test and training data, perplexity, F1, errors of regression,
 * learning rate. The best test of a run, and where it was stopped early, are marked.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/figures.h"
#include "tools/report/run_log.h"
#include "tools/report/text.h"

enum { MARKS_MAX = 400, CURVES_MAX = 12, LABELLED_RUNS = 3 };

typedef enum source { TESTS, TESTS_AND_EPOCHS, STEPS } source;

static const struct {
	const char *title, *y_name;
	size_t offset; /* of the value in ls_run_row */
	source of;
	double y_most;
} kinds[] = {
	{ "loss", "loss", offsetof(ls_run_row, loss), TESTS_AND_EPOCHS, 0 },
	{ "accuracy", "accuracy", offsetof(ls_run_row, accuracy), TESTS_AND_EPOCHS, 1 },
	{ "Test perplexity", "perplexity", offsetof(ls_run_row, perplexity), TESTS, 0 },
	{ "Macro F1 on test data", "F1", offsetof(ls_run_row, f1), TESTS, 1 },
	{ "Mean absolute error on test data", "MAE", offsetof(ls_run_row, mae), TESTS, 0 },
	{ "R2 on test data", "R2", offsetof(ls_run_row, r2), TESTS, 1 },
	{ "Learning rate", "learning rate", offsetof(ls_run_row, lr), STEPS, 0 },
};

/* A plot in the making. */
typedef struct drawing {
	const ls_study *study;
	const char *model;
	size_t kind;
	int by_steps;        /* else by epochs */
	size_t runs;         /* with values */
	int tested, trained; /* some run has values of tests; of training */
	ls_plot *plot;
	size_t curves, parts; /* in this plot; plots before it */
} drawing;

static const ls_run_log *log_of(const ls_study *study, const ls_point *point)
{
	return &study->logs[point - study->results->points];
}

static double value_of(const drawing *d, const ls_run_row *row)
{
	double value;
	memcpy(&value, (const char *)row + kinds[d->kind].offset, sizeof(value));
	return value;
}

static int has_values(const drawing *d, const ls_run_rows *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (isfinite(value_of(d, &list->rows[i])))
			return 1;
	return 0;
}

static const ls_run_rows *main_rows(const drawing *d, const ls_run_log *log)
{
	return kinds[d->kind].of == STEPS ? &log->steps : &log->tests;
}

static int has_training(const drawing *d, const ls_run_log *log)
{
	return kinds[d->kind].of == TESTS_AND_EPOCHS && has_values(d, &log->epochs);
}

/* "Test and training loss of cnn", with "(2)" where one plot has no room for all runs. */
static ls_plot *begin(const drawing *d)
{
	ls_plot *plot = ls_page_plot(d->study->page);
	const char *of = d->tested && d->trained ? "Test and training " : d->trained ? "Training " : "Test ";

	if (!plot)
		return NULL;
	plot->title = ls_page_text(d->study->page, "%s%s of %s%s", kinds[d->kind].of == TESTS_AND_EPOCHS ? of : "",
				   kinds[d->kind].title, d->model,
				   d->parts > 0 ? ls_page_text(d->study->page, " (%zu)", d->parts + 1) : "");
	plot->x_name = d->by_steps ? "step" : "epoch";
	plot->y_name = kinds[d->kind].y_name;
	plot->y_most = kinds[d->kind].y_most;
	plot->whole_x = 1;
	return plot;
}

static ls_curve *next_curve(drawing *d, const char *name)
{
	if (d->curves == CURVES_MAX) {
		d->parts++;
		d->curves = 0;
	}
	if (d->curves++ == 0)
		d->plot = begin(d);
	return ls_plot_curve(d->plot, name, LS_CURVE_MEASURED);
}

/* What is special about a test; NULL: nothing. */
static const char *remark_of(const ls_run_log *log, const ls_run_rows *list, size_t i)
{
	if (list != &log->tests)
		return NULL;
	if (i == ls_run_log_best(log))
		return "best";
	return list->rows[i].step == log->stopped_step ? "stopped early" : NULL;
}

static void add_curve(drawing *d, const char *name, const ls_run_log *log, const ls_run_rows *list)
{
	ls_curve *curve = next_curve(d, name);
	size_t stride = 1 + list->count / MARKS_MAX;
	char value[LS_NUMBER_TEXT];

	for (size_t i = 0; i < list->count; i++) {
		const ls_run_row *row = &list->rows[i];
		int64_t x = d->by_steps ? row->step : row->epoch + 1;
		const char *remark = remark_of(log, list, i);
		double y = value_of(d, row);
		if ((i % stride && i + 1 < list->count && !remark) || !isfinite(y))
			continue;
		ls_curve_add(curve, (double)x, y,
			     ls_page_text(d->study->page, "%s: %s %s at %s %" PRId64 "%s%s", name,
					  kinds[d->kind].y_name, ls_number_text(value, y),
					  d->plot ? d->plot->x_name : "", x, remark ? ", " : "", remark ? remark : ""));
		if (remark)
			ls_curve_ring(curve, d->runs <= LABELLED_RUNS ? remark : "");
	}
}

static void add_run(drawing *d, const ls_point *point)
{
	const ls_run_log *log = log_of(d->study, point);
	const char *name = ls_run_name(point);

	if (has_values(d, main_rows(d, log)))
		add_curve(d, d->trained ? ls_page_text(d->study->page, "%s, test", name) : name, log,
			  main_rows(d, log));
	if (has_training(d, log))
		add_curve(d, ls_page_text(d->study->page, "%s, training", name), log, &log->epochs);
}

static int is_drawn(const drawing *d, size_t line, const ls_point *point)
{
	return !strcmp(point->job.model, d->model) && !ls_study_seen(d->study, line, point);
}

static void look(drawing *d, const ls_point *point)
{
	const ls_run_log *log = log_of(d->study, point);
	int tested = has_values(d, main_rows(d, log)), trained = has_training(d, log);

	d->tested |= tested;
	d->trained |= trained;
	d->runs += tested || trained;
	d->by_steps |= kinds[d->kind].of == STEPS || log->by_steps;
}

static void draw(drawing *d)
{
	const ls_study *study = d->study;

	for (int pass = 0; pass < 2; pass++)
		for (size_t l = 0; l < study->line_count; l++)
			for (size_t i = 0; i < study->lines[l].count; i++) {
				if (!is_drawn(d, l, study->lines[l].points[i]))
					continue;
				if (pass == 0)
					look(d, study->lines[l].points[i]);
				else
					add_run(d, study->lines[l].points[i]);
			}
}

void ls_figures_runs(const ls_study *study, const char *model)
{
	for (size_t kind = 0; kind < LS_COUNT(kinds); kind++) {
		drawing d = { .study = study, .model = model, .kind = kind };
		draw(&d);
	}
}
