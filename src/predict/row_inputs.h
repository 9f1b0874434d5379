/*
 * row_inputs.h - rows of files with a table, as samples for a model that was trained on one (table_schema.h).
 */
#ifndef LS_PREDICT_ROW_INPUTS_H
#define LS_PREDICT_ROW_INPUTS_H

#include "data/readers/table_schema.h"

typedef struct ls_row_inputs {
	const ls_table_schema *schema;
	const char *path;
	ls_table_rows *rows; /* NULL: no file is open */
	ls_table_places places;
	float *compact; /* (inputs) */
	ls_table_met met;
	uint64_t last_bad; /* line */
} ls_row_inputs;

/* Both are borrowed. */
ls_status ls_row_inputs_open(ls_row_inputs *out, const ls_table_schema *schema, const char *path);
/* Reports values that the training part did not have. */
void ls_row_inputs_close(ls_row_inputs *inputs, int is_quiet);

/* The next row: its features, or where the schema is of text, *text, valid until the next call. LS_EFORMAT: a row that
 * cannot be used, and the next call goes on behind it. */
ls_status ls_row_inputs_next(ls_row_inputs *inputs, float *features, const char **text, size_t *bytes, uint64_t *line,
			     int *found);

#endif
