/*
 * Rows of tables: the first byte chooses CSV, TSV or JSONL. Every row has a field for each
 * column, and errors say where.
 */
#include <string.h>

#include "common.h"
#include "data/readers/table_rows.h"

static void read_rows(ls_table_rows *rows)
{
	ls_table_row row = { 0 };
	uint64_t bad = 0;
	int found = 1;

	while (found) {
		ls_status status = ls_table_rows_next(rows, &row, &found);
		if (status == LS_OK) {
			for (size_t i = 0; found && i < ls_table_rows_columns(rows); i++)
				fuzz_require(row.field[i][row.bytes[i]] == '\0' &&
					     strlen(row.field[i]) == row.bytes[i]);
			continue;
		}
		fuzz_require(status == LS_EFORMAT && strstr(ls_last_error(), "table."));
		if (row.line == bad) /* a damaged file */
			break;
		bad = row.line;
		found = 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "table.csv", "table.tsv", "table.jsonl", "table.csv" };
	ls_table_rows *rows = NULL;

	if (size < 1)
		return 0;
	if (ls_table_rows_of_bytes(&rows, data + 1, size - 1, names[data[0] & 3]) != LS_OK) {
		fuzz_require(rows == NULL && strstr(ls_last_error(), "table."));
		return 0;
	}
	for (size_t i = 0; i < ls_table_rows_columns(rows); i++) {
		fuzz_require(ls_table_rows_find(rows, ls_table_rows_column(rows, i)) == i);
		if (i % 2 == 0)
			ls_table_rows_want(rows, i);
	}
	read_rows(rows);
	for (size_t i = 0; i < ls_table_rows_columns(rows); i += 2)
		fuzz_require(ls_table_rows_nested(rows, i) == 0);
	fuzz_require((ls_table_rows_extra(rows).rows == 0) == (ls_table_rows_extra(rows).line == 0));
	ls_table_rows_close(rows);
	return 0;
}
