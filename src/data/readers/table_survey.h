/*
 * table_survey.h - the schema of a table, by a walk over the rows of its training part.
 *
 * A column is of numbers if every value that is not missing is one, else of categories; columns of more than
 * LS_TABLE_CATEGORIES_MAX different values, without a name or without a value are left out, which is reported.
 *
 * In a file whose fields are separated by semicolons 1,5 is a number, unless its column also has decimal points.
 * Numbers with decimal commas that are taken for categories are warned of.
 *
 * A target of other values than numbers is one of classes; so is one of at most LS_TABLE_FEW different whole numbers.
 * Several targets are labels where all are 0 or 1, else regression. The task, where it is given, decides instead.
 */
#ifndef LS_DATA_READERS_TABLE_SURVEY_H
#define LS_DATA_READERS_TABLE_SURVEY_H

#include "data/readers/table_files.h"
#include "data/readers/table_schema.h"

enum { LS_TABLE_FEW = 20 };

/* options: target, task, text_column, skip_bad. Notes are printed. */
ls_status ls_table_survey(ls_table_schema *out, const ls_table_files *files, const ls_dataset_options *options);

#endif
