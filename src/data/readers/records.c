#include "data/readers/records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"

enum { ROOM = 1 << 16 };

struct ls_records {
	ls_stream *stream;
	char separator; /* 0: none */
	size_t most;
	char buffer[ROOM];
	size_t at, end;
	uint64_t line;       /* of the next byte */
	int has_begun, last; /* last: the byte that ended the record, or END */

	/* A field in quotes as it stands in the file, from the opening quote. Where the quote turns out to be a stray
	 * one, what follows its line is read again, before more of the stream. */
	char *quoted, *again;
	size_t quoted_used, quoted_room, again_at, again_end, again_room;
	uint64_t quote_line;

	/* the record at hand: its fields one behind the other, each with a zero behind it */
	char *text;
	size_t used, text_room;
	size_t *start, *bytes; /* (fields) */
	const char **field;
	size_t fields, start_room, bytes_room, field_room;
};

ls_status ls_records_new(ls_records **out, ls_stream *stream, char separator, size_t most)
{
	ls_records *r = calloc(1, sizeof(*r));
	if (!r)
		return ls_fail(LS_EMEMORY, "no memory to read %s", ls_stream_name(stream));
	r->stream = stream;
	r->separator = separator;
	r->most = most;
	r->line = 1;
	*out = r;
	return LS_OK;
}

void ls_records_free(ls_records *r)
{
	if (!r)
		return;
	free(r->quoted);
	free(r->again);
	free(r->text);
	free(r->start);
	free(r->bytes);
	free(r->field);
	free(r);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

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
	if (got >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
		return ls_fail(LS_EFORMAT, "%s:1: the file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)",
			       ls_stream_name(r->stream));
	return LS_OK;
}

/* The next byte without taking it, or END. */
static ls_status peek(ls_records *r, int *out)
{
	if (!r->has_begun)
		LS_TRY(skip_mark(r));
	if (r->again_at < r->again_end) {
		*out = (unsigned char)r->again[r->again_at];
		return LS_OK;
	}
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
	*(r->again_at < r->again_end ? &r->again_at : &r->at) += 1;
}

/* A byte of a field in quotes. */
static ls_status take_quoted(ls_records *r, int c)
{
	take(r, c);
	LS_TRY(ls_array_grow(&r->quoted, &r->quoted_room, r->quoted_used + 1, 1));
	r->quoted[r->quoted_used++] = (char)c;
	return LS_OK;
}

/* ---- the record at hand ------------------------------------------------------------------------------------------ */

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
	return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": %s", ls_stream_name(r->stream), line, what);
}

static ls_status too_long(ls_records *r, uint64_t line)
{
	LS_TRY(skip_line(r));
	return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": more than %zu bytes in a line", ls_stream_name(r->stream), line,
		       r->most);
}

/* What was read behind the line of the opening quote is to be read again: *lines of it. */
static ls_status go_back(ls_records *r, uint64_t *lines)
{
	const char *line_end = memchr(r->quoted, '\n', r->quoted_used);
	size_t kept = line_end ? (size_t)(line_end + 1 - r->quoted) : r->quoted_used;
	size_t rest = r->again_end - r->again_at;

	*lines = 0;
	if (!line_end)
		return skip_line(r);
	for (size_t i = kept; i < r->quoted_used; i++)
		*lines += r->quoted[i] == '\n' || i + 1 == r->quoted_used;
	LS_TRY(ls_array_grow(&r->quoted, &r->quoted_room, r->quoted_used + rest, 1));
	if (rest > 0)
		memcpy(r->quoted + r->quoted_used, r->again + r->again_at, rest);
	char *free_again = r->again;
	size_t free_room = r->again_room;
	r->again = r->quoted;
	r->again_at = kept;
	r->again_end = r->quoted_used + rest;
	r->again_room = r->quoted_room;
	r->quoted = free_again;
	r->quoted_room = free_room;
	r->line = r->quote_line + 1;
	return LS_OK;
}

/* A quote that was not closed is one bad line, whatever was taken for a part of its field. */
static ls_status refuse_quote(ls_records *r, const char *what)
{
	uint64_t lines;

	LS_TRY(go_back(r, &lines));
	if (lines == 0)
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": %s", ls_stream_name(r->stream), r->quote_line, what);
	return ls_fail(LS_EFORMAT,
		       "%s:%" PRIu64 ": %s; %" PRIu64 " more line%s would belong to the field: is a quote missing?",
		       ls_stream_name(r->stream), r->quote_line, what, lines, ls_plural(lines, "s"));
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int is_separator(const ls_records *r, int c)
{
	return r->separator && c == r->separator;
}

/* To the end of the line, or to a separator; *last is the byte that ended it, taken. */
static ls_status read_plain(ls_records *r, uint64_t line, int *last)
{
	for (;;) {
		LS_TRY(peek(r, last));
		if (*last != END)
			take(r, *last);
		if (*last == END || *last == '\n' || is_separator(r, *last))
			break;
		if (r->separator && r->separator != '\t' && *last == '"')
			return refuse(r, line, "a quote inside a field that does not begin with one");
		if (r->used >= r->most)
			return too_long(r, line);
		LS_TRY(add_byte(r, *last));
	}
	if (!is_separator(r, *last) && r->used > r->start[r->fields - 1] && r->text[r->used - 1] == '\r')
		r->used--;
	return LS_OK;
}

/* From the opening quote to the separator or line end behind the closing one. */
static ls_status read_quoted(ls_records *r, int *last)
{
	r->quoted_used = 0;
	r->quote_line = r->line;
	LS_TRY(take_quoted(r, '"'));
	for (;;) {
		LS_TRY(peek(r, last));
		if (*last == END)
			return refuse_quote(r, "the quote that a field begins with is never closed");
		LS_TRY(take_quoted(r, *last));
		if (r->used >= r->most)
			return refuse_quote(r, "a field in quotes is too long");
		if (*last == '"') {
			LS_TRY(peek(r, last));
			if (*last != '"')
				break;
			LS_TRY(take_quoted(r, *last));
		}
		LS_TRY(add_byte(r, *last));
	}
	if (*last == '\r') {
		take(r, *last);
		LS_TRY(peek(r, last));
	}
	if (*last != END && *last != '\n' && !is_separator(r, *last))
		return refuse_quote(r, "text behind the quote that closes a field");
	if (*last != END)
		take(r, *last);
	return LS_OK;
}

static ls_status read_record(ls_records *r, uint64_t line)
{
	int c;

	r->used = r->fields = 0;
	do {
		LS_TRY(begin_field(r));
		LS_TRY(peek(r, &c));
		LS_TRY(r->separator && c == '"' ? read_quoted(r, &c) : read_plain(r, line, &c));
		LS_TRY(end_field(r));
	} while (is_separator(r, c));
	r->last = c;
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
	} while (r->separator && is_empty);
	*found = 1;
	/* the line end of the last line was taken, if it has one */
	*out = (ls_record){ *line, r->fields, r->field, r->bytes, r->line - *line + (r->last != '\n') };
	return LS_OK;
}
