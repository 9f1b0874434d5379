/*
 * records.h - lines of text and records of CSV from a stream, one at a time.
 *
 * A record of CSV is as RFC 4180 has it: fields with commas between them; a field in double quotes may hold commas,
 * line ends and, doubled, quotes. Between tabs, where few programs quote, a quote inside a field is a character. Lines
 * end with \n or \r\n, the last one may not; a byte order mark at the beginning is dropped. Nothing is kept but the
 * record at hand, and its size is limited.
 */
#ifndef LS_DATA_READERS_RECORDS_H
#define LS_DATA_READERS_RECORDS_H

#include "data/readers/stream.h"

typedef struct ls_records ls_records;

/* The stream is borrowed. Fields are separated by `separator`: a comma, a semicolon, a tab; 0: lines of text, without
 * fields. A record of more than `most` bytes is an error. */
ls_status ls_records_new(ls_records **out, ls_stream *stream, char separator, size_t most);
void ls_records_free(ls_records *records); /* harmless on NULL */

/* One record: of plain text a line, which is its one field. Each field ends with a zero that is not counted. */
typedef struct ls_record {
	uint64_t line; /* it begins here, counted from 1 */
	size_t fields;
	const char *const *field; /* (fields) valid until the next call */
	const size_t *bytes;      /* (fields) */
	uint64_t lines;           /* that it stands in */
} ls_record;

/*
 * The next record; *found is 0 at the end. Lines of CSV that are empty are left out, those of text are not.
 * LS_EFORMAT is a record that cannot be read, and the next call goes on with the line behind that of the mistake: a
 * quote that is never closed costs the line that it stands in, not all that follows. *line is where the record began.
 * Any other failure ends the stream.
 */
ls_status ls_records_next(ls_records *records, ls_record *out, int *found, uint64_t *line);

#endif
