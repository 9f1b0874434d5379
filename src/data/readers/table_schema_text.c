/*
 * table_schema_text.c - a schema as lines of CSV, which weights keep, and back.
 *
 *   lockstep table,1,regression
 *   target,price,200000.5,81000.25
 *   number,area,120.5,33.1
 *   category,city,Lyon,Oslo
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv_quote.h"
#include "base/names.h"
#include "data/dataset.h"
#include "data/readers/records.h"
#include "data/readers/table_schema.h"
#include "data/task.h"

#define MAGIC "lockstep table"
#define VERSION "1"
#define LINE_BYTES_MAX ((size_t)1 << 26)

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Every text in quotes: it may be a number, or empty. */
static void put_column(FILE *to, const char *kind, const ls_table_column *c, int has_values, int has_numbers)
{
	fprintf(to, "%s,", kind);
	ls_csv_quote(to, c->name);
	for (size_t i = 0; has_values && i < c->values; i++) {
		putc(',', to);
		ls_csv_quote(to, c->value[i]);
	}
	if (has_numbers)
		fprintf(to, ",%.17g,%.17g", c->mean, c->deviation);
	putc('\n', to);
}

ls_status ls_table_schema_to_text(const ls_table_schema *s, char **out)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return ls_fail(LS_EMEMORY, "no memory for the columns of a table");
	fprintf(to, MAGIC "," VERSION ",%s\n", ls_task_name(s->task));
	for (size_t i = 0; i < s->targets; i++)
		put_column(to, "target", &s->target[i], s->task == LS_TASK_CLASSIFICATION,
			   s->task == LS_TASK_REGRESSION);
	if (s->text)
		put_column(to, "text", &(ls_table_column){ .name = s->text }, 0, 0);
	for (size_t i = 0; i < s->inputs; i++)
		put_column(to, s->input[i].is_category ? "category" : "number", &s->input[i], s->input[i].is_category,
			   !s->input[i].is_category);
	if (fclose(to) != 0) {
		free(text);
		return ls_fail(LS_EMEMORY, "no memory for the columns of a table");
	}
	*out = text;
	return LS_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static ls_status damaged(const char *where, const ls_record *r, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s: line %" PRIu64 " of its table's columns: %s", where, r->line, what);
}

static ls_status take_values(ls_table_column *c, const ls_record *r, const char *where)
{
	c->value = calloc(r->fields, sizeof(*c->value));
	if (!c->value)
		return ls_fail(LS_EMEMORY, "%s: no memory for the values of a column", where);
	for (size_t i = 2; i < r->fields; i++) {
		if (i > 2 && ls_table_compare_values(r->field[i - 1], r->field[i]) >= 0)
			return damaged(where, r, "values do not ascend");
		c->value[c->values] = strdup(r->field[i]);
		if (!c->value[c->values])
			return ls_fail(LS_EMEMORY, "%s: no memory for the values of a column", where);
		c->values++;
	}
	return LS_OK;
}

static ls_status take_numbers(ls_table_column *c, const ls_record *r, const char *where)
{
	if (r->fields != 4 || !ls_table_is_number(r->field[2], &c->mean) ||
	    !ls_table_is_number(r->field[3], &c->deviation) || !isfinite(c->mean) || !isfinite(c->deviation) ||
	    !(c->deviation > 0))
		return damaged(where, r, "expected a mean and a positive deviation");
	return LS_OK;
}

static ls_status take_target(ls_table_schema *s, const ls_record *r, const char *where)
{
	ls_table_column *c = NULL;

	LS_TRY(ls_table_schema_add(s, 1, r->field[1], &c));
	if (s->task == LS_TASK_REGRESSION)
		return take_numbers(c, r, where);
	c->is_category = s->task == LS_TASK_CLASSIFICATION;
	if (!c->is_category)
		return r->fields == 2 ? LS_OK : damaged(where, r, "expected a name");
	LS_TRY(take_values(c, r, where));
	if (s->targets > 1 || c->values < 2 || c->values > LS_TABLE_CLASSES_MAX)
		return damaged(where, r, "expected one target with two classes or more");
	return LS_OK;
}

static ls_status take_input(ls_table_schema *s, const ls_record *r, const char *where)
{
	ls_table_column *c = NULL;

	if (s->inputs == LS_TABLE_COLUMNS_MAX)
		return damaged(where, r, "too many columns");
	LS_TRY(ls_table_schema_add(s, 0, r->field[1], &c));
	if (strcmp(r->field[0], "number") == 0)
		return take_numbers(c, r, where);
	c->is_category = 1;
	LS_TRY(take_values(c, r, where));
	if (c->values < 1 || c->values > LS_TABLE_CATEGORIES_MAX)
		return damaged(where, r, "too few or too many categories");
	return LS_OK;
}

static ls_status take_head(ls_table_schema *s, const ls_record *r, const char *where)
{
	if (r->fields != 3 || strcmp(r->field[0], MAGIC) != 0 || strcmp(r->field[1], VERSION) != 0)
		return damaged(where, r, "not \"" MAGIC "\" of version " VERSION);
	return ls_task_find(r->field[2], &s->task) ? LS_OK : damaged(where, r, "no task that is known");
}

static ls_status take_line(ls_table_schema *s, const ls_record *r, const char *where)
{
	const char *kind = r->field[0];

	if (r->fields < 2)
		return damaged(where, r, "expected a name");
	if (strcmp(kind, "target") == 0)
		return take_target(s, r, where);
	if (strcmp(kind, "number") == 0 || strcmp(kind, "category") == 0)
		return take_input(s, r, where);
	if (strcmp(kind, "text") != 0 || s->text || r->fields != 2)
		return damaged(where, r, "no kind of column that is known");
	s->text = strdup(r->field[1]);
	return s->text ? LS_OK : ls_fail(LS_EMEMORY, "%s: no memory for its columns", where);
}

static ls_status read_lines(ls_table_schema *s, ls_records *records, const char *where)
{
	ls_record r = { 0 };
	uint64_t line;
	int found = 1;

	for (uint64_t i = 0; found; i++) {
		LS_TRY(ls_records_next(records, &r, &found, &line));
		if (found)
			LS_TRY(i == 0 ? take_head(s, &r, where) : take_line(s, &r, where));
	}
	if (s->targets == 0 || (s->inputs == 0) == (s->text == NULL))
		return ls_fail(LS_EFORMAT, "%s: the columns of its table are incomplete", where);
	return LS_OK;
}

ls_status ls_table_schema_from_text(ls_table_schema *out, const char *text, const char *where)
{
	ls_table_schema s = { 0 };
	ls_stream *stream = NULL;
	ls_records *records = NULL;

	LS_TRY(ls_stream_of_bytes(&stream, text, strlen(text), where));
	ls_status status = ls_records_new(&records, stream, ',', LINE_BYTES_MAX);
	if (status == LS_OK)
		status = read_lines(&s, records, where);
	ls_records_free(records);
	ls_stream_close(stream);
	if (status == LS_OK)
		*out = s;
	else
		ls_table_schema_release(&s);
	return status;
}
