/*
 * table_files.h - where the training and the test rows of a table are: a file, of which one row in ten is for tests, by
 * a hash of its fields; or a directory with train.csv and test.csv (.tsv, .jsonl, .gz).
 */
#ifndef LS_DATA_READERS_TABLE_FILES_H
#define LS_DATA_READERS_TABLE_FILES_H

#include <lockstep/data.h>

#include "data/readers/table_rows.h"

typedef struct ls_table_files {
	char path[2][4096]; /* by ls_split; the same file twice where it is split */
	int is_split;
} ls_table_files;

/* A file with the name of a table, or a directory with such a train file. */
int ls_table_is(const char *path);

/* LS_ENOTFOUND: it is none. */
ls_status ls_table_files_find(ls_table_files *out, const char *path);

/* A walk over the rows of a part. Rows that cannot be read are skipped, up to `skip_bad` of them. */
typedef struct ls_table_walk {
	const char *path;
	ls_table_rows *rows;
	int is_split;
	ls_split split;
	int names_bad; /* each row that is skipped is named in a warning, up to a number */
	uint64_t skip_bad, bad;
	uint64_t bad_here;  /* of this part: rows that are no rows have no hash, and count as training rows */
	uint64_t bad_line;  /* of the last one */
	uint64_t bad_lines; /* that bad rows of several lines stand in */
} ls_table_walk;

ls_status ls_table_walk_begin(ls_table_walk *walk, const ls_table_files *files, ls_split split, uint64_t skip_bad);
ls_status ls_table_walk_next(ls_table_walk *walk, ls_table_row *row, int *found);
/* The row at hand cannot be used: LS_OK where it may be skipped, else `status`. */
ls_status ls_table_walk_skip(ls_table_walk *walk, const ls_table_row *row, ls_status status);
void ls_table_walk_end(ls_table_walk *walk);

#endif
