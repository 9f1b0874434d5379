/*
 * table_rows.h - the rows of a file with a table: CSV, TSV or JSONL, plain or gzip.
 *
 * The first line of CSV and TSV has the names of the columns; of JSONL every line is an object, and the names are the
 * keys of the first one. Other keys are counted, and lists and objects are allowed in columns that nobody reads. Fields
 * of a .csv file are separated by commas, or where its first line has none by semicolons or tabs. Numbers of JSON
 * become text, null and a key that is missing an empty field.
 */
#ifndef LS_DATA_READERS_TABLE_ROWS_H
#define LS_DATA_READERS_TABLE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_TABLE_COLUMNS_MAX = 100000 };

/* Ends a message about columns where ls_table_rows_lack_names(). */
#define LS_TABLE_NO_NAMES "; does the file begin with a row? Its first line must have the names of the columns"

typedef struct ls_table_rows ls_table_rows;

/* By the end of its name: .csv, .tsv, .jsonl, also with .gz behind it. */
int ls_table_rows_named(const char *path);

/* Opens the file and reads the names of its columns. LS_EFORMAT: they cannot be used. The path is borrowed. */
ls_status ls_table_rows_open(ls_table_rows **out, const char *path);
/* The same of bytes, which are borrowed; the name says what they are. */
ls_status ls_table_rows_of_bytes(ls_table_rows **out, const void *bytes, size_t count, const char *name);
void ls_table_rows_close(ls_table_rows *rows); /* harmless on NULL */

size_t ls_table_rows_columns(const ls_table_rows *rows);
const char *ls_table_rows_column(const ls_table_rows *rows, size_t i);
/* Whether a name of a column is a number: the file may have no line of names. */
int ls_table_rows_lack_names(const ls_table_rows *rows);
/* Its place, or the number of columns where there is none of that name. */
size_t ls_table_rows_find(const ls_table_rows *rows, const char *name);

/* The column is read: from now on a list or an object in it makes a bad row. */
void ls_table_rows_want(ls_table_rows *rows, size_t i);
/* The line of the first list or object in a column that nobody wants; 0: there was none so far. */
uint64_t ls_table_rows_nested(const ls_table_rows *rows, size_t i);

/* Rows of JSONL so far that have keys which the first one does not have. */
typedef struct ls_table_extra {
	uint64_t rows, line; /* the first of them */
	char key[64];        /* such a key there, printable */
} ls_table_extra;

ls_table_extra ls_table_rows_extra(const ls_table_rows *rows);

typedef struct ls_table_row {
	uint64_t line;            /* it begins here, counted from 1 */
	const char *const *field; /* (columns) UTF-8 without zeros; valid until the next call */
	const size_t *bytes;      /* (columns) */
	uint64_t hash;            /* of all fields */
	uint64_t lines;           /* that it stands in, of CSV */
	int has_decimal_commas;   /* fields are separated by semicolons: 1,5 is a number */
} ls_table_row;

/* The next row; *found is 0 at the end. LS_EFORMAT is a row that cannot be read, whose line is set, and the next call
 * goes on behind it; a damaged file fails at the same line again. */
ls_status ls_table_rows_next(ls_table_rows *rows, ls_table_row *out, int *found);

#endif
