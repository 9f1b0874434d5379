/*
 * table_values.h - the different values of a column of a table.
 */
#ifndef LS_DATA_READERS_TABLE_VALUES_H
#define LS_DATA_READERS_TABLE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/readers/table_schema.h"

/* A set of texts, up to a number of them. All zero: empty. */
typedef struct ls_table_values {
	char **value; /* (count) in the order they came */
	size_t count, room;
	uint32_t *slot; /* (slots) index + 1, by hash; 0: free */
	size_t slots;
} ls_table_values;

void ls_table_values_release(ls_table_values *values);

/* The value is one of them; more than `most` + 1 are not kept. */
ls_status ls_table_values_add(ls_table_values *values, const char *text, size_t most);

/* Of spellings of a number the shortest stays, without spaces: 1 of ` 1`, `1` and `1.0`. */
void ls_table_values_merge_numbers(ls_table_values *values);

/* The values become the column's, in their order. */
void ls_table_values_give(ls_table_values *values, ls_table_column *column);

#endif
