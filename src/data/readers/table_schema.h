/*
 * table_schema.h - how the columns of a table become numbers: what a model was trained with, and is used with.
 *
 *   number      (x - mean) / deviation, both of the training part; a missing value is the mean, which is 0 then
 *   category    one feature per value of the training part, in their order: 1 for the row's, 0 for the others; of a
 *               missing or unknown value all are 0
 *   text        one column, which a tokenizer reads: then there are no other inputs
 *   target      regression: (x - mean) / deviation; multi-label: 0 or 1; classification: a class for each value, where
 *               all are numbers a class for each number: 0 and 0.0 are one
 *
 * A schema is kept with the weights, as lines of CSV: `number,area,120.5,33.1`.
 */
#ifndef LS_DATA_READERS_TABLE_SCHEMA_H
#define LS_DATA_READERS_TABLE_SCHEMA_H

#include <lockstep/data.h>

#include "data/readers/table_rows.h"

enum { LS_TABLE_CATEGORIES_MAX = 256, LS_TABLE_CLASSES_MAX = 65536 };

typedef struct ls_table_column {
	char *name;
	int is_category;
	double mean, deviation; /* of numbers */
	char **value;           /* (values) of categories, ascending; of a target: its classes */
	size_t values;
} ls_table_column;

typedef struct ls_table_schema {
	ls_task task;
	char *text; /* the column of text; NULL: columns of numbers and categories */
	ls_table_column *input, *target;
	size_t inputs, targets, input_room, target_room;
} ls_table_schema;

void ls_table_schema_release(ls_table_schema *schema); /* harmless when it is zero */

/* Add a column to the inputs, or to the targets; its name is copied. It is borrowed until the next one is added. */
ls_status ls_table_schema_add(ls_table_schema *schema, int is_target, const char *name, ls_table_column **out);

size_t ls_table_features(const ls_table_schema *schema); /* that inputs become */
int ls_table_outputs(const ls_table_schema *schema);     /* classes, or targets */
/* What output i stands for: a class, or the name of a target. */
const char *ls_table_output_name(const ls_table_schema *schema, size_t i);

/* As text, malloc'd; and from text, which may be anybody's: `where` names it in errors. */
ls_status ls_table_schema_to_text(const ls_table_schema *schema, char **out);
ls_status ls_table_schema_from_text(ls_table_schema *out, const char *text, const char *where);

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Empty, or one of the words that pandas takes for it: NA, NaN, null, None, ... */
int ls_table_is_missing(const char *field);
/* The whole field, but for spaces around it, is a number; it may be infinite. */
int ls_table_is_number(const char *field, double *out);
/* It is one with a decimal comma: 1,5. */
int ls_table_is_comma_number(const char *field, double *out);
/* The order of values: numbers by their size, then other texts by their bytes. */
int ls_table_compare_values(const char *a, const char *b);
int ls_table_same_number(const char *a, const char *b); /* 0 and 0.0 are; texts are not */

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Where the columns of a schema are in a file. */
typedef struct ls_table_places {
	size_t *input, *target; /* (inputs), (targets) */
	size_t text;
} ls_table_places;

/* LS_EMISMATCH: the file lacks a column. Without targets, a file to predict, they are not looked for. */
ls_status ls_table_find_places(ls_table_places *out, const ls_table_schema *schema, ls_table_rows *rows,
			       const char *path, int with_targets);
void ls_table_places_release(ls_table_places *places);

/* What was met in rows, to be reported. */
typedef struct ls_table_met {
	uint64_t missing, unknown; /* fields */
	char example[64];          /* of an unknown value */
	char column[64];           /* its column */
} ls_table_met;

/* A row's inputs, one number per column: standardised, or the index of the category, -1 for none. LS_EFORMAT: a field
 * is not what its column was in training; `where` is "file:line". */
ls_status ls_table_read_inputs(const ls_table_schema *schema, const size_t *places, const ls_table_row *row,
			       const char *path, float *compact, ls_table_met *met);

/* Features (ls_table_features) of such numbers. */
void ls_table_expand(const ls_table_schema *schema, const float *compact, float *features);

/* A row's label, and its float targets where the task is not classification. LS_EFORMAT: a target is missing, no
 * number, or of no class of the training part. */
ls_status ls_table_read_targets(const ls_table_schema *schema, const size_t *places, const ls_table_row *row,
				const char *path, int32_t *label, float *targets);

#endif
