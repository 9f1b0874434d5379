#include "data/readers/table_schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/names.h"

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static void release_columns(ls_table_column *column, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < column[i].values; k++)
			free(column[i].value[k]);
		free(column[i].value);
		free(column[i].name);
	}
	free(column);
}

void ls_table_schema_release(ls_table_schema *s)
{
	release_columns(s->input, s->inputs);
	release_columns(s->target, s->targets);
	free(s->text);
	*s = (ls_table_schema){ 0 };
}

ls_status ls_table_schema_add(ls_table_schema *s, int is_target, const char *name, ls_table_column **out)
{
	ls_table_column **list = is_target ? &s->target : &s->input;
	size_t *count = is_target ? &s->targets : &s->inputs, *room = is_target ? &s->target_room : &s->input_room;
	char *copy = strdup(name);

	if (!copy)
		return ls_fail(LS_EMEMORY, "no memory for the columns of a table");
	ls_status status = ls_array_grow(list, room, *count + 1, sizeof(**list));
	if (status != LS_OK) {
		free(copy);
		return status;
	}
	*out = &(*list)[(*count)++];
	**out = (ls_table_column){ .name = copy, .deviation = 1 };
	return LS_OK;
}

size_t ls_table_features(const ls_table_schema *s)
{
	size_t features = 0;
	for (size_t i = 0; i < s->inputs; i++)
		features += s->input[i].is_category ? s->input[i].values : 1;
	return features;
}

int ls_table_outputs(const ls_table_schema *s)
{
	return (int)(s->task == LS_TASK_CLASSIFICATION ? s->target[0].values : s->targets);
}

const char *ls_table_output_name(const ls_table_schema *s, size_t i)
{
	return s->task == LS_TASK_CLASSIFICATION ? s->target[0].value[i] : s->target[i].name;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

int ls_table_is_missing(const char *field)
{
	static const char *const words[] = { "",    "NA",   "N/A",  "n/a",  "#N/A", "<NA>", "NaN",
					     "nan", "-NaN", "-nan", "null", "NULL", "None", "#NA" };
	for (size_t i = 0; i < LS_COUNT(words); i++)
		if (strcmp(field, words[i]) == 0)
			return 1;
	return 0;
}

int ls_table_is_number(const char *field, double *out)
{
	const char *begin = field + strspn(field, " \t"), *word = begin + (*begin == '-' || *begin == '+');
	size_t length = ls_decimal_span(begin);

	if (length == 0 && *begin == '+') /* which a decimal span does not begin with */
		length = ls_decimal_span(begin + 1) > 0 ? 1 + ls_decimal_span(begin + 1) : 0;
	if (length == 0 && (!strcasecmp(word, "inf") || !strcasecmp(word, "infinity")))
		length = strlen(begin);
	if (length == 0 || begin[length + strspn(begin + length, " \t")] != '\0')
		return 0;
	*out = strtod(begin, NULL);
	return 1;
}

int ls_table_is_comma_number(const char *field, double *out)
{
	const char *comma = strchr(field, ',');
	char copy[64];

	if (!comma || strchr(field, '.') || strlen(field) >= sizeof(copy))
		return 0;
	memcpy(copy, field, strlen(field) + 1);
	copy[comma - field] = '.';
	return ls_table_is_number(copy, out);
}

static ls_status fail_at(const char *path, const ls_table_row *row, const ls_table_column *c, const char *field,
			 const char *what)
{
	char shown[64], name[64];

	return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": column '%s' is '%s', %s", path, row->line,
		       ls_text_printable(name, sizeof(name), c->name), ls_text_printable(shown, sizeof(shown), field),
		       what);
}

static ls_status read_number(const ls_table_column *c, const ls_table_row *row, const char *path, const char *field,
			     double *out)
{
	if (!ls_table_is_number(field, out) && !(row->has_decimal_commas && ls_table_is_comma_number(field, out)))
		return fail_at(path, row, c, field, "not a number");
	return isfinite(*out) ? LS_OK : fail_at(path, row, c, field, "not a finite number");
}

int ls_table_compare_values(const char *a, const char *b)
{
	double x, y;
	int has_x = ls_table_is_number(a, &x), has_y = ls_table_is_number(b, &y);

	if (has_x != has_y)
		return has_x ? -1 : 1;
	if (has_x && x != y)
		return x < y ? -1 : 1;
	return strcmp(a, b);
}

int ls_table_same_number(const char *a, const char *b)
{
	double x, y;
	return ls_table_is_number(a, &x) && ls_table_is_number(b, &y) && x == y;
}

/* Texts come behind numbers, so the last value shows whether there are any. */
static int has_numbers_only(const ls_table_column *c)
{
	double number;
	return c->values > 0 && ls_table_is_number(c->value[c->values - 1], &number);
}

/* Index of a value, or -1. Where all are numbers, another spelling of one is found, too. */
static int64_t find_value(const ls_table_column *c, const char *value)
{
	size_t low = 0, high = c->values;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = ls_table_compare_values(c->value[middle], value);
		if (order == 0)
			return (int64_t)middle;
		*(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
	}
	if (!has_numbers_only(c))
		return -1;
	if (low < c->values && ls_table_same_number(c->value[low], value))
		return (int64_t)low;
	return low > 0 && ls_table_same_number(c->value[low - 1], value) ? (int64_t)low - 1 : -1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static ls_status find_columns(size_t **out, const ls_table_column *column, size_t count, ls_table_rows *rows,
			      const char *path)
{
	char name[64];

	*out = calloc(count + 1, sizeof(**out));
	if (!*out)
		return ls_fail(LS_EMEMORY, "no memory for the columns of %s", path);
	for (size_t i = 0; i < count; i++) {
		(*out)[i] = ls_table_rows_find(rows, column[i].name);
		if ((*out)[i] == ls_table_rows_columns(rows))
			return ls_fail(LS_EMISMATCH, "%s has no column '%s', which the model was trained with", path,
				       ls_text_printable(name, sizeof(name), column[i].name));
		ls_table_rows_want(rows, (*out)[i]);
	}
	return LS_OK;
}

ls_status ls_table_find_places(ls_table_places *out, const ls_table_schema *s, ls_table_rows *rows, const char *path,
			       int with_targets)
{
	ls_table_places p = { 0 };
	char name[64];
	ls_status status = find_columns(&p.input, s->input, s->inputs, rows, path);

	if (status == LS_OK && with_targets)
		status = find_columns(&p.target, s->target, s->targets, rows, path);
	if (s->text)
		p.text = ls_table_rows_find(rows, s->text);
	if (status == LS_OK && s->text && p.text == ls_table_rows_columns(rows))
		status = ls_fail(LS_EMISMATCH, "%s has no column '%s' with text; name it with options.text_column",
				 path, ls_text_printable(name, sizeof(name), s->text));
	else if (status == LS_OK && s->text)
		ls_table_rows_want(rows, p.text);
	if (status == LS_OK)
		*out = p;
	else
		ls_table_places_release(&p);
	return status;
}

void ls_table_places_release(ls_table_places *p)
{
	free(p->input);
	free(p->target);
	*p = (ls_table_places){ 0 };
}

static void note_unknown(ls_table_met *met, const ls_table_column *c, const char *field)
{
	if (met->unknown++ > 0)
		return;
	ls_text_printable(met->example, sizeof(met->example), field);
	ls_text_printable(met->column, sizeof(met->column), c->name);
}

ls_status ls_table_read_inputs(const ls_table_schema *s, const size_t *places, const ls_table_row *row,
			       const char *path, float *compact, ls_table_met *met)
{
	for (size_t i = 0; i < s->inputs; i++) {
		const ls_table_column *c = &s->input[i];
		const char *field = row->field[places[i]];
		double value = c->mean;
		int is_missing = ls_table_is_missing(field);
		met->missing += (uint64_t)is_missing;
		if (c->is_category) {
			int64_t at = is_missing ? -1 : find_value(c, field);
			if (at < 0 && !is_missing)
				note_unknown(met, c, field);
			compact[i] = (float)at;
			continue;
		}
		if (!is_missing)
			LS_TRY(read_number(c, row, path, field, &value));
		compact[i] = (float)((value - c->mean) / c->deviation);
		if (!isfinite(compact[i]))
			return fail_at(path, row, c, field, "too far from the numbers of the training part");
	}
	return LS_OK;
}

void ls_table_expand(const ls_table_schema *s, const float *compact, float *features)
{
	for (size_t i = 0; i < s->inputs; i++) {
		const ls_table_column *c = &s->input[i];
		if (!c->is_category) {
			*features++ = compact[i];
			continue;
		}
		memset(features, 0, c->values * sizeof(*features));
		if (compact[i] >= 0)
			features[(size_t)compact[i]] = 1;
		features += c->values;
	}
}

static ls_status read_class(const ls_table_column *c, const ls_table_row *row, const char *path, const char *field,
			    int32_t *label)
{
	int64_t at = find_value(c, field);

	if (at < 0)
		return fail_at(path, row, c, field, "which is no class of the training part");
	*label = (int32_t)at;
	return LS_OK;
}

ls_status ls_table_read_targets(const ls_table_schema *s, const size_t *places, const ls_table_row *row,
				const char *path, int32_t *label, float *targets)
{
	*label = 0;
	for (size_t i = 0; i < s->targets; i++) {
		const ls_table_column *c = &s->target[i];
		const char *field = row->field[places[i]];
		double value;
		if (ls_table_is_missing(field))
			return fail_at(path, row, c, field,
				       "and it is what is to be predicted: it must not be missing");
		if (s->task == LS_TASK_CLASSIFICATION)
			return read_class(c, row, path, field, label);
		LS_TRY(read_number(c, row, path, field, &value));
		if (s->task == LS_TASK_MULTI_LABEL && value != 0 && value != 1)
			return fail_at(path, row, c, field, "not 0 or 1, as several labels are");
		targets[i] = (float)((value - c->mean) / c->deviation);
		if (!isfinite(targets[i]))
			return fail_at(path, row, c, field, "too far from the numbers of the training part");
	}
	return LS_OK;
}
