#include "data/readers/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { ROOM = 1 << 16 };

struct ls_records {
	ls_stream *stream;
	int is_csv;
	size_t most;
	char buffer[ROOM];
	size_t at, end;
	uint64_t line; /* of the next byte */
	int has_begun;

	/* the record at hand: its fields one behind the other, each with a zero behind it */
	char *text;
	size_t used, text_room;
	size_t *start, *bytes; /* (fields) */
	const char **field;
	size_t fields, start_room, bytes_room, field_room;
};

ls_status ls_records_new(ls_records **out, ls_stream *stream, int is_csv, size_t most)
{
	ls_records *r = calloc(1, sizeof(*r));
	if (!r)
		return ls_fail(LS_EMEMORY, "no memory to read %s", ls_stream_name(stream));
	r->stream = stream;
	r->is_csv = is_csv;
	r->most = most;
	r->line = 1;
	*out = r;
	return LS_OK;
}

void ls_records_free(ls_records *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->start);
	free(r->bytes);
	free(r->field);
	free(r);
}

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

enum { END = -1 };

static ls_status skip_mark(ls_records *r)
{
	const uint8_t *bytes;
	size_t got;
	char mark[3];

	r->has_begun = 1;
	LS_TRY(ls_stream_peek(r->stream, &bytes, sizeof(mark), &got));
	if (got == sizeof(mark) && memcmp(bytes, "\xef\xbb\xbf", sizeof(mark)) == 0)
		return ls_stream_read_all(r->stream, mark, sizeof(mark), &got);
	return LS_OK;
}

/* The next byte without taking it, or END. */
static ls_status peek(ls_records *r, int *out)
{
	if (!r->has_begun)
		LS_TRY(skip_mark(r));
	if (r->at == r->end) {
		r->at = r->end = 0;
		LS_TRY(ls_stream_read(r->stream, r->buffer, ROOM, &r->end));
	}
	*out = r->at < r->end ? (unsigned char)r->buffer[r->at] : END;
	return LS_OK;
}

static void take(ls_records *r, int c)
{
	r->line += c == '\n';
	r->at++;
}

/* ---- the record at hand -------------------------------------------------------------------------------------------- */

static ls_status add_byte(ls_records *r, int c)
{
	LS_TRY(ls_array_grow(&r->text, &r->text_room, r->used + 1, 1));
	r->text[r->used++] = (char)c;
	return LS_OK;
}

static ls_status begin_field(ls_records *r)
{
	LS_TRY(ls_array_grow(&r->start, &r->start_room, r->fields + 1, sizeof(*r->start)));
	LS_TRY(ls_array_grow(&r->bytes, &r->bytes_room, r->fields + 1, sizeof(*r->bytes)));
	LS_TRY(ls_array_grow(&r->field, &r->field_room, r->fields + 1, sizeof(*r->field)));
	r->start[r->fields++] = r->used;
	return LS_OK;
}

static ls_status end_field(ls_records *r)
{
	size_t i = r->fields - 1;
	r->bytes[i] = r->used - r->start[i];
	return add_byte(r, '\0');
}

static ls_status fail_at(const ls_records *r, uint64_t line, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s:%llu: %s", ls_stream_name(r->stream), (unsigned long long)line, what);
}

/* Past the end of the line. */
static ls_status skip_line(ls_records *r)
{
	int c = 0;
	while (c != '\n' && c != END) {
		LS_TRY(peek(r, &c));
		if (c != END)
			take(r, c);
	}
	return LS_OK;
}

static ls_status refuse(ls_records *r, uint64_t line, const char *what)
{
	LS_TRY(skip_line(r));
	return fail_at(r, line, what);
}

static ls_status too_long(ls_records *r, uint64_t line)
{
	LS_TRY(skip_line(r));
	return ls_fail(LS_EFORMAT, "%s:%llu: more than %zu bytes in a line", ls_stream_name(r->stream),
		       (unsigned long long)line, r->most);
}

/* ---- lines --------------------------------------------------------------------------------------------------------- */

/* To the end of the line, or in CSV to a comma; *last is the byte that ended it, taken. */
static ls_status read_plain(ls_records *r, uint64_t line, int *last)
{
	for (;;) {
		LS_TRY(peek(r, last));
		if (*last != END)
			take(r, *last);
		if (*last == END || *last == '\n' || (r->is_csv && *last == ','))
			break;
		if (r->is_csv && *last == '"')
			return refuse(r, line, "a quote inside a field that does not begin with one");
		if (r->used >= r->most)
			return too_long(r, line);
		LS_TRY(add_byte(r, *last));
	}
	if (*last != ',' && r->used > r->start[r->fields - 1] && r->text[r->used - 1] == '\r')
		r->used--;
	return LS_OK;
}

/* Behind the opening quote, to the comma or line end behind the closing one. */
static ls_status read_quoted(ls_records *r, uint64_t line, int *last)
{
	for (;;) {
		LS_TRY(peek(r, last));
		if (*last == END)
			return fail_at(r, line, "the quote that a field begins with is never closed");
		take(r, *last);
		if (r->used >= r->most)
			return too_long(r, line);
		if (*last == '"') {
			LS_TRY(peek(r, last));
			if (*last != '"')
				break;
			take(r, *last);
		}
		LS_TRY(add_byte(r, *last));
	}
	if (*last == '\r') {
		take(r, *last);
		LS_TRY(peek(r, last));
	}
	if (*last != END && *last != '\n' && *last != ',')
		return refuse(r, line, "text behind the quote that closes a field");
	if (*last != END)
		take(r, *last);
	return LS_OK;
}

static ls_status read_record(ls_records *r, uint64_t line)
{
	int c = ',';

	r->used = r->fields = 0;
	do {
		LS_TRY(begin_field(r));
		LS_TRY(peek(r, &c));
		if (r->is_csv && c == '"') {
			take(r, c);
			LS_TRY(read_quoted(r, line, &c));
		} else {
			LS_TRY(read_plain(r, line, &c));
		}
		LS_TRY(end_field(r));
	} while (r->is_csv && c == ',');
	for (size_t i = 0; i < r->fields; i++)
		r->field[i] = r->text + r->start[i];
	return LS_OK;
}

ls_status ls_records_next(ls_records *r, ls_record *out, int *found, uint64_t *line)
{
	int c, is_empty;

	do {
		*found = 0;
		*line = r->line;
		LS_TRY(peek(r, &c));
		if (c == END)
			return LS_OK;
		LS_TRY(read_record(r, *line));
		is_empty = r->fields == 1 && r->bytes[0] == 0;
	} while (r->is_csv && is_empty);
	*found = 1;
	*out = (ls_record){ *line, r->fields, r->field, r->bytes };
	return LS_OK;
}
