#include "data/readers/table_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/names.h"
#include "data/readers/records.h"
#include "data/text_input.h"

#define ROW_BYTES_MAX ((size_t)64 << 20)

struct ls_table_rows {
	const char *name; /* of the file */
	ls_stream *stream;
	ls_records *records;
	int is_json, has_decimal_commas;
	char **column; /* (columns) */
	size_t columns, column_room;
	size_t *order; /* (columns) sorted by name */

	uint64_t line; /* of the row at hand */

	/* JSON: the row at hand, and the first one, whose keys are the columns */
	json_t *object;
	int is_ahead; /* the object at hand was not delivered yet */
	char **text;  /* (columns) numbers as text; NULL: the object's own */
	const char **field;
	size_t *bytes;
	uint8_t *is_wanted;    /* (columns) a list or an object there is an error */
	uint64_t *nested_line; /* (columns) of the first list or object; 0: there is none */
	ls_table_extra extra;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int ends_with(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	if (length > 3 && !strcasecmp(path + length - 3, ".gz"))
		length -= 3;
	return length > tail && !strncasecmp(path + length - tail, ending, tail);
}

int ls_table_rows_named(const char *path)
{
	return ends_with(path, ".csv") || ends_with(path, ".tsv") || ends_with(path, ".jsonl");
}

/* A .csv file of countries with a decimal comma has semicolons. What is in quotes separates nothing. */
static ls_status find_separator(ls_table_rows *r, char *separator)
{
	const uint8_t *bytes;
	size_t got, length = 0;
	int has[256] = { 0 }, is_quoted = 0;

	*separator = '\t';
	if (ends_with(r->name, ".tsv"))
		return LS_OK;
	LS_TRY(ls_stream_peek(r->stream, &bytes, LS_STREAM_PEEK, &got));
	for (; length < got && (is_quoted || bytes[length] != '\n'); length++) {
		is_quoted ^= bytes[length] == '"';
		has[bytes[length]] |= !is_quoted;
	}
	*separator = has[','] ? ',' : has[';'] ? ';' : has['\t'] ? '\t' : ',';
	return LS_OK;
}

static ls_status add_column(ls_table_rows *r, uint64_t line, const char *name, size_t bytes)
{
	char shown[64];

	if (r->columns == LS_TABLE_COLUMNS_MAX)
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": more than %d columns", r->name, line, LS_TABLE_COLUMNS_MAX);
	if (strlen(name) != bytes || ls_text_invalid(name, bytes) < bytes)
		return ls_fail(LS_EFORMAT,
			       "%s:%" PRIu64 ": the name of column %zu, '%s', is not UTF-8; convert the file (iconv)",
			       r->name, line, r->columns + 1, ls_text_printable(shown, sizeof(shown), name));
	LS_TRY(ls_array_grow(&r->column, &r->column_room, r->columns + 1, sizeof(*r->column)));
	r->column[r->columns] = strdup(name);
	if (!r->column[r->columns])
		return ls_fail(LS_EMEMORY, "%s: no memory for the names of its columns", r->name);
	r->columns++;
	return LS_OK;
}

int ls_table_rows_lack_names(const ls_table_rows *r)
{
	for (size_t i = 0; !r->is_json && i < r->columns; i++) {
		char *end = r->column[i];
		(void)strtod(r->column[i], &end);
		if (end > r->column[i] && *end == '\0')
			return 1;
	}
	return 0;
}

static int compare_columns(const void *a, const void *b, void *rows)
{
	const ls_table_rows *r = rows;
	return strcmp(r->column[*(const size_t *)a], r->column[*(const size_t *)b]);
}

/* Names are looked up in their order. Of two columns with the same name nobody knows which is meant. */
static ls_status sort_columns(ls_table_rows *r, uint64_t line)
{
	char shown[64];

	r->order = calloc(r->columns + 1, sizeof(*r->order));
	if (!r->order)
		return ls_fail(LS_EMEMORY, "%s: no memory for the names of its columns", r->name);
	for (size_t i = 0; i < r->columns; i++)
		r->order[i] = i;
	qsort_r(r->order, r->columns, sizeof(*r->order), compare_columns, r);
	for (size_t i = 1; i < r->columns; i++)
		if (strcmp(r->column[r->order[i - 1]], r->column[r->order[i]]) == 0)
			return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": two columns are named '%s'; names must differ%s",
				       r->name, line, ls_text_printable(shown, sizeof(shown), r->column[r->order[i]]),
				       ls_table_rows_lack_names(r) ? LS_TABLE_NO_NAMES : "");
	return LS_OK;
}

static ls_status no_header(const ls_table_rows *r)
{
	return ls_fail(LS_EFORMAT, "%s:1: nothing is in it; a table begins with %s", r->name,
		       r->is_json ? "an object whose keys are its columns" : "a line of the names of its columns");
}

static ls_status read_header(ls_table_rows *r)
{
	ls_record record;
	uint64_t line;
	int found;

	LS_TRY(ls_records_next(r->records, &record, &found, &line));
	if (!found)
		return no_header(r);
	for (size_t i = 0; i < record.fields; i++)
		LS_TRY(add_column(r, line, record.field[i], record.bytes[i]));
	return sort_columns(r, line);
}

/* ---- JSONL ------------------------------------------------------------------------------------------------------- */

/* The next line that is not blank, as an object; *found is 0 at the end. */
static ls_status next_object(ls_table_rows *r, int *found)
{
	ls_record record;
	json_error_t error;

	json_decref(r->object);
	r->object = NULL;
	do {
		LS_TRY(ls_records_next(r->records, &record, found, &r->line));
		if (!*found)
			return LS_OK;
	} while (record.field[0][strspn(record.field[0], " \t")] == '\0' && strlen(record.field[0]) == record.bytes[0]);
	r->object = json_loadb(record.field[0], record.bytes[0], JSON_REJECT_DUPLICATES, &error);
	if (!r->object)
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": not acceptable JSON: %s", r->name, r->line, error.text);
	if (!json_is_object(r->object))
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": not an object with a value per column", r->name, r->line);
	return LS_OK;
}

static ls_status read_keys(ls_table_rows *r)
{
	const char *key;
	json_t *value;
	int found;

	LS_TRY(next_object(r, &found));
	if (!found)
		return no_header(r);
	json_object_foreach(r->object, key, value)
	{
		LS_TRY(add_column(r, r->line, key, strlen(key)));
	}
	if (r->columns == 0)
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": the first object has no keys, which are the columns",
			       r->name, r->line);
	LS_TRY(sort_columns(r, r->line));
	r->text = calloc(r->columns, sizeof(*r->text));
	r->field = calloc(r->columns, sizeof(*r->field));
	r->bytes = calloc(r->columns, sizeof(*r->bytes));
	r->is_wanted = calloc(r->columns, sizeof(*r->is_wanted));
	r->nested_line = calloc(r->columns, sizeof(*r->nested_line));
	r->is_ahead = 1;
	return r->text && r->field && r->bytes && r->is_wanted && r->nested_line
		       ? LS_OK
		       : ls_fail(LS_EMEMORY, "%s: no memory for its rows", r->name);
}

/* A list or an object: an error in a column that is wanted; in others it is noted, and its text is the field. */
static ls_status take_nested(ls_table_rows *r, size_t i, const json_t *value)
{
	char shown[64];

	if (r->is_wanted[i])
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": '%s' is %s; columns have numbers, texts, true and false",
			       r->name, r->line, ls_text_printable(shown, sizeof(shown), r->column[i]),
			       json_is_array(value) ? "a list" : "an object");
	if (r->nested_line[i] == 0)
		r->nested_line[i] = r->line;
	return LS_OK;
}

static ls_status take_value(ls_table_rows *r, size_t i, const json_t *value)
{
	free(r->text[i]);
	r->text[i] = NULL;
	r->field[i] = "";
	r->bytes[i] = 0;
	if (!value || json_is_null(value))
		return LS_OK;
	if (json_is_object(value) || json_is_array(value))
		LS_TRY(take_nested(r, i, value));
	if (json_is_string(value)) {
		r->field[i] = json_string_value(value);
		r->bytes[i] = json_string_length(value);
		return LS_OK;
	}
	r->text[i] = json_dumps(value, JSON_ENCODE_ANY);
	if (!r->text[i])
		return ls_fail(LS_EMEMORY, "%s: no memory for its rows", r->name);
	r->field[i] = r->text[i];
	r->bytes[i] = strlen(r->text[i]);
	return LS_OK;
}

/* Keys that the first object does not have are no columns. */
static void note_extra(ls_table_rows *r)
{
	const char *key;
	json_t *value;
	size_t known = 0;

	for (size_t i = 0; i < r->columns; i++)
		known += json_object_get(r->object, r->column[i]) != NULL;
	if (known == json_object_size(r->object) || r->extra.rows++ > 0)
		return;
	r->extra.line = r->line;
	json_object_foreach(r->object, key, value)
	{
		if (ls_table_rows_find(r, key) == r->columns) {
			ls_text_printable(r->extra.key, sizeof(r->extra.key), key);
			return;
		}
	}
}

static ls_status next_json(ls_table_rows *r, ls_record *out, int *found)
{
	*found = 1;
	if (!r->is_ahead)
		LS_TRY(next_object(r, found));
	r->is_ahead = 0;
	if (!*found)
		return LS_OK;
	for (size_t i = 0; i < r->columns; i++)
		LS_TRY(take_value(r, i, json_object_get(r->object, r->column[i])));
	note_extra(r);
	*out = (ls_record){ r->line, r->columns, r->field, r->bytes, 1 };
	return LS_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static ls_status begin(ls_table_rows *r)
{
	char separator = 0;

	r->is_json = ends_with(r->name, ".jsonl");
	if (!r->is_json)
		LS_TRY(find_separator(r, &separator));
	r->has_decimal_commas = separator == ';';
	LS_TRY(ls_records_new(&r->records, r->stream, separator, ROW_BYTES_MAX));
	return r->is_json ? read_keys(r) : read_header(r);
}

static ls_status open_stream(ls_table_rows **out, ls_stream *stream, const char *name)
{
	ls_table_rows *r = calloc(1, sizeof(*r));
	if (!r) {
		ls_stream_close(stream);
		return ls_fail(LS_EMEMORY, "no memory to read %s", name);
	}
	r->name = name;
	r->stream = stream;
	ls_status status = begin(r);
	if (status == LS_OK)
		*out = r;
	else
		ls_table_rows_close(r);
	return status;
}

ls_status ls_table_rows_open(ls_table_rows **out, const char *path)
{
	ls_stream *stream = NULL;
	LS_TRY(ls_stream_open(&stream, path));
	return open_stream(out, stream, path);
}

ls_status ls_table_rows_of_bytes(ls_table_rows **out, const void *bytes, size_t count, const char *name)
{
	ls_stream *stream = NULL;
	LS_TRY(ls_stream_of_bytes(&stream, bytes, count, name));
	return open_stream(out, stream, name);
}

void ls_table_rows_close(ls_table_rows *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->columns; i++) {
		free(r->column[i]);
		if (r->text)
			free(r->text[i]);
	}
	free(r->column);
	free(r->order);
	free(r->text);
	free(r->field);
	free(r->bytes);
	free(r->is_wanted);
	free(r->nested_line);
	json_decref(r->object);
	ls_records_free(r->records);
	ls_stream_close(r->stream);
	free(r);
}

size_t ls_table_rows_columns(const ls_table_rows *r)
{
	return r->columns;
}

const char *ls_table_rows_column(const ls_table_rows *r, size_t i)
{
	return r->column[i];
}

size_t ls_table_rows_find(const ls_table_rows *r, const char *name)
{
	size_t low = 0, high = r->columns;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(r->column[r->order[middle]], name);
		if (order == 0)
			return r->order[middle];
		*(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
	}
	return r->columns;
}

void ls_table_rows_want(ls_table_rows *r, size_t i)
{
	if (r->is_wanted)
		r->is_wanted[i] = 1;
}

uint64_t ls_table_rows_nested(const ls_table_rows *r, size_t i)
{
	return r->nested_line ? r->nested_line[i] : 0;
}

ls_table_extra ls_table_rows_extra(const ls_table_rows *r)
{
	return r->extra;
}

static ls_status check_field(const ls_table_rows *r, const ls_record *record, size_t i)
{
	char shown[64];

	if (strlen(record->field[i]) == record->bytes[i] &&
	    ls_text_invalid(record->field[i], record->bytes[i]) == record->bytes[i])
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": column '%s' is not UTF-8; convert the file (iconv)", r->name,
		       record->line, ls_text_printable(shown, sizeof(shown), r->column[i]));
}

static uint64_t hash_fields(const ls_record *record)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < record->fields; i++)
		hash = XXH64(record->field[i], record->bytes[i], hash);
	return hash;
}

static ls_status wrong_fields(const ls_table_rows *r, const ls_record *record)
{
	char where[96] = "";

	if (record->lines > 1)
		snprintf(where, sizeof(where), " in the %" PRIu64 " lines that a quote makes one row", record->lines);
	return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": %zu field%s%s; the table has %zu columns", r->name, record->line,
		       record->fields, ls_plural(record->fields, "s"), where, r->columns);
}

ls_status ls_table_rows_next(ls_table_rows *r, ls_table_row *out, int *found)
{
	ls_record record;
	ls_status status =
		r->is_json ? next_json(r, &record, found) : ls_records_next(r->records, &record, found, &r->line);

	out->line = r->line;
	out->lines = status == LS_OK && *found ? record.lines : 1;
	if (status != LS_OK || !*found)
		return status;
	if (record.fields != r->columns)
		return wrong_fields(r, &record);
	for (size_t i = 0; i < record.fields; i++)
		LS_TRY(check_field(r, &record, i));
	*out = (ls_table_row){ record.line,          record.field, record.bytes,
			       hash_fields(&record), record.lines, r->has_decimal_commas };
	return LS_OK;
}
