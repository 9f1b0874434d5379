#include "eval_print.h"

#include <inttypes.h>
#include <stdlib.h>

#include "text_table.h"

enum { MATRIX_MOST = 11 }; /* classes of a confusion matrix that fits a terminal */

static void add_name(ls_text_table *table, const ls_class_counts *c, int64_t i)
{
	if (c->names)
		ls_text_table_add(table, "%" PRId64 " %s", i, c->names[i]);
	else
		ls_text_table_add(table, "%" PRId64, i);
}

static void print_scores(const ls_class_counts *c, FILE *to)
{
	ls_text_table table = { .columns = 5, .heads = { "<class", "samples", "precision", "recall", "F1" } };
	ls_class_score score;
	double sum = 0;
	int64_t met = 0; /* classes that something is labelled or predicted as, as in scikit-learn */

	for (int64_t i = 0; ls_class_counts_at(c, i, &score); i++) {
		add_name(&table, c, i);
		ls_text_table_add(&table, "%" PRIu64, score.samples);
		ls_text_table_add(&table, "%.4f", score.precision);
		ls_text_table_add(&table, "%.4f", score.recall);
		ls_text_table_add(&table, "%.4f", score.f1);
		sum += score.f1;
		met += score.samples + score.predicted > 0;
	}
	ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	fprintf(to, "macro F1: %.4f\n", met > 0 ? sum / (double)met : 0);
}

/* Rows are labels, columns are predictions. */
static void print_matrix(const ls_class_counts *c, FILE *to)
{
	char heads[MATRIX_MOST][24];
	ls_text_table table = { .columns = (int)c->classes + 1, .heads = { "<label \\ prediction" } };

	for (int64_t i = 0; i < c->classes; i++) {
		snprintf(heads[i], sizeof(heads[i]), "%" PRId64, i);
		table.heads[i + 1] = heads[i];
	}
	for (int64_t i = 0; i < c->classes; i++) {
		add_name(&table, c, i);
		for (int64_t k = 0; k < c->classes; k++)
			ls_text_table_add(&table, "%" PRIu64, c->confusion[i * c->classes + k]);
	}
	ls_text_table_print(&table, to);
	ls_text_table_release(&table);
}

void ls_eval_print_targets(const ls_target_scores *s, FILE *to)
{
	int is_regression = s->task == LS_TASK_REGRESSION;
	ls_text_table table = { .columns = 5, .heads = { "<label", "samples", "precision", "recall", "F1" } };
	ls_text_table numbers = { .columns = 4, .heads = { "<target", "MAE", "RMSE", "R2" } };
	ls_text_table *t = is_regression ? &numbers : &table;

	for (int64_t i = 0; i < s->outputs; i++) {
		const ls_target_score *score = &s->score[i];
		if (s->names)
			ls_text_table_add(t, "%s", s->names[i]);
		else
			ls_text_table_add(t, "%" PRId64, i);
		if (!is_regression)
			ls_text_table_add(t, "%" PRIu64, score->support);
		ls_text_table_add(t, is_regression ? "%.6g" : "%.4f", is_regression ? score->mae : score->precision);
		ls_text_table_add(t, is_regression ? "%.6g" : "%.4f", is_regression ? score->rmse : score->recall);
		ls_text_table_add(t, "%.4f", is_regression ? score->r2 : score->f1);
	}
	fputc('\n', to);
	ls_text_table_print(t, to);
	ls_text_table_release(t);
}

void ls_eval_print_classes(const ls_class_counts *c, FILE *to)
{
	if (c->classes > c->top)
		fprintf(to, "top-%" PRId64 " accuracy: %.4f\n", c->top, (double)c->top_correct / (double)c->samples);
	fputc('\n', to);
	print_scores(c, to);
	if (c->classes > MATRIX_MOST)
		return;
	fputc('\n', to);
	print_matrix(c, to);
}
