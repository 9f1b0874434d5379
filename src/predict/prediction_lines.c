#include "predict/prediction_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv_quote.h"
#include "base/status.h"
#include "base/topk.h"
#include "data/text_input.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* In quotes only where it has to be. */
static void put_csv(FILE *to, const char *text)
{
	if (strpbrk(text, ",\"\r\n"))
		ls_csv_quote(to, text);
	else
		fputs(text, to);
}

/* JSON is UTF-8; names of files may be anything. */
static void put_json(FILE *to, const char *text)
{
	size_t bytes = strlen(text), valid = ls_text_invalid(text, bytes);

	putc('"', to);
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];
		if (i == valid) {
			fputs("\\ufffd", to);
			valid = i + 1 + ls_text_invalid(text + i + 1, bytes - i - 1);
		} else if (c == '"' || c == '\\') {
			fprintf(to, "\\%c", c);
		} else if (c < 0x20) {
			fprintf(to, "\\u%04x", c);
		} else {
			putc(c, to);
		}
	}
	putc('"', to);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The name of an output, or a number. */
static const char *output_name(const ls_prediction_lines *l, int64_t i, char *room, size_t size)
{
	const char *name = ls_model_class_name(l->model, i);

	if (!name)
		snprintf(room, size, "output_%" PRId64, i);
	return name ? name : room;
}

static void put_header(const ls_prediction_lines *l)
{
	char room[32];

	fputs("input,row", l->to);
	for (int64_t i = 0; l->task != LS_TASK_CLASSIFICATION && i < l->outputs; i++) {
		putc(',', l->to);
		put_csv(l->to, output_name(l, i, room, sizeof(room)));
	}
	for (int64_t k = 1; l->task == LS_TASK_CLASSIFICATION && k <= l->top; k++) {
		char number[24] = "";
		if (k > 1)
			snprintf(number, sizeof(number), "_%" PRId64, k);
		fprintf(l->to, ",label%s", number);
		if (l->has_names)
			fprintf(l->to, ",name%s", number);
		fprintf(l->to, ",probability%s", number);
	}
	putc('\n', l->to);
}

ls_status ls_prediction_lines_begin(ls_prediction_lines *out, FILE *to, const ls_model *model,
				    const ls_predict_options *options)
{
	ls_model_facts facts;

	LS_TRY(ls_model_describe(model, &facts));
	if (options->top < 1)
		return ls_fail(LS_EINVALID, "options.top is %" PRId64 "; it must be at least 1", options->top);
	*out = (ls_prediction_lines){ .to = to,
				      .model = model,
				      .format = options->format,
				      .task = facts.task,
				      .outputs = facts.outputs,
				      .top = options->top < facts.outputs ? options->top : facts.outputs,
				      .has_names = ls_model_class_name(model, 0) != NULL };
	out->best = calloc((size_t)out->top, sizeof(*out->best));
	if (!out->best)
		return ls_fail(LS_EMEMORY, "no memory for %" PRId64 " classes", out->top);
	return LS_OK;
}

void ls_prediction_lines_end(ls_prediction_lines *l)
{
	free(l->best);
	*l = (ls_prediction_lines){ 0 };
}

static void add_csv(const ls_prediction_lines *l, const char *input, uint64_t row, const float *chances)
{
	put_csv(l->to, input);
	fprintf(l->to, ",%" PRIu64, row);
	for (int64_t k = 0; k < l->top; k++) {
		fprintf(l->to, ",%" PRId64 ",", l->best[k]);
		if (l->has_names) {
			put_csv(l->to, ls_model_class_name(l->model, l->best[k]));
			putc(',', l->to);
		}
		fprintf(l->to, "%.9g", (double)chances[l->best[k]]);
	}
	putc('\n', l->to);
}

static void put_class(const ls_prediction_lines *l, int64_t label, const float *chances)
{
	fprintf(l->to, "\"label\":%" PRId64 ",", label);
	if (l->has_names) {
		fputs("\"name\":", l->to);
		put_json(l->to, ls_model_class_name(l->model, label));
		putc(',', l->to);
	}
	fprintf(l->to, "\"probability\":%.9g", (double)chances[label]);
}

static void add_json(const ls_prediction_lines *l, const char *input, uint64_t row, const float *chances)
{
	fputs("{\"input\":", l->to);
	put_json(l->to, input);
	fprintf(l->to, ",\"row\":%" PRIu64 ",", row);
	put_class(l, l->best[0], chances);
	for (int64_t k = 0; l->top > 1 && k < l->top; k++) {
		fputs(k == 0 ? ",\"top\":[{" : "},{", l->to);
		put_class(l, l->best[k], chances);
	}
	fputs(l->top > 1 ? "}]}\n" : "}\n", l->to);
}

/* Numbers, or a probability for every label. */
static void add_values_csv(const ls_prediction_lines *l, const char *input, uint64_t row, const float *values)
{
	put_csv(l->to, input);
	fprintf(l->to, ",%" PRIu64, row);
	for (int64_t i = 0; i < l->outputs; i++)
		fprintf(l->to, ",%.9g", (double)values[i]);
	putc('\n', l->to);
}

static void add_values_json(const ls_prediction_lines *l, const char *input, uint64_t row, const float *values)
{
	char room[32];

	fputs("{\"input\":", l->to);
	put_json(l->to, input);
	fprintf(l->to, ",\"row\":%" PRIu64 ",\"%s\":{", row,
		l->task == LS_TASK_REGRESSION ? "values" : "probabilities");
	for (int64_t i = 0; i < l->outputs; i++) {
		if (i > 0)
			putc(',', l->to);
		put_json(l->to, output_name(l, i, room, sizeof(room)));
		fprintf(l->to, ":%.9g", (double)values[i]);
	}
	fputs("}}\n", l->to);
}

static void add_values(const ls_prediction_lines *l, const char *input, uint64_t row, const float *values)
{
	if (l->format == LS_PREDICT_CSV)
		add_values_csv(l, input, row, values);
	else
		add_values_json(l, input, row, values);
}

void ls_prediction_lines_add(ls_prediction_lines *l, const char *input, uint64_t row, const float *chances)
{
	if (l->format == LS_PREDICT_CSV && !l->has_header)
		put_header(l);
	l->has_header = 1;
	if (l->task != LS_TASK_CLASSIFICATION) {
		add_values(l, input, row, chances);
		return;
	}
	ls_topk(chances, l->outputs, l->top, l->best);
	if (l->format == LS_PREDICT_CSV)
		add_csv(l, input, row, chances);
	else
		add_json(l, input, row, chances);
}
