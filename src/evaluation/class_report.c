#include "evaluation/class_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/status.h"

/* With quotes; names that are not UTF-8 are null. */
static void put_name(FILE *to, const char *name)
{
	json_t *string = json_string(name);
	char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	fputs(text ? text : "null", to);
	free(text);
	json_decref(string);
}

static void put_class(FILE *to, const ls_class_counts *c, int64_t i)
{
	ls_class_score s;

	ls_class_counts_at(c, i, &s);
	fprintf(to, "  {\"label\": %" PRId64, i);
	if (c->names) {
		fputs(", \"name\": ", to);
		put_name(to, c->names[i]);
	}
	fprintf(to,
		", \"support\": %" PRIu64 ", \"predicted\": %" PRIu64 ", \"correct\": %" PRIu64
		", \"precision\": %.9g, \"recall\": %.9g, \"f1\": %.9g}%s\n",
		s.samples, s.predicted, s.correct, s.precision, s.recall, s.f1, i + 1 < c->classes ? "," : "");
}

static void put_row(FILE *to, const ls_class_counts *c, int64_t i)
{
	fputs("  [", to);
	for (int64_t k = 0; k < c->classes; k++)
		fprintf(to, "%s%" PRIu64, k > 0 ? ", " : "", c->confusion[i * c->classes + k]);
	fprintf(to, "]%s\n", i + 1 < c->classes ? "," : "");
}

/* A line per class and one per row of the matrix, which may have millions of cells. */
static void put_counts(FILE *to, const ls_class_counts *c)
{
	fprintf(to, ",\n \"top\": %" PRId64 ",\n \"top_accuracy\": %.9g,\n \"classes\": [\n", c->top,
		(double)c->top_correct / (double)c->samples);
	for (int64_t i = 0; i < c->classes; i++)
		put_class(to, c, i);
	fputs(" ],\n \"confusion\": [\n", to);
	for (int64_t i = 0; i < c->classes; i++)
		put_row(to, c, i);
	fputs(" ]", to);
}

ls_status ls_class_report_write(const char *data, const ls_eval_result *r, const ls_class_counts *c, const char *path)
{
	ls_file_draft draft;

	LS_TRY(ls_file_begin(&draft, path));
	FILE *to = draft.stream;
	fputs("{\n \"format\": \"lockstep class metrics\",\n \"version\": 1,\n \"data\": ", to);
	put_name(to, data);
	fprintf(to,
		",\n \"fingerprint\": \"%016" PRIx64 "\",\n \"samples\": %" PRIu64
		",\n \"loss\": %.9g,\n \"accuracy\": %.9g",
		r->fingerprint, r->samples, r->loss, r->accuracy);
	if (r->perplexity > 0)
		fprintf(to, ",\n \"perplexity\": %.9g", r->perplexity);
	if (c)
		put_counts(to, c);
	fputs("\n}\n", to);
	return ls_file_finish(&draft, LS_OK);
}
