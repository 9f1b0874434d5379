/*
 * info_table.h - what a table holds, for people.
 */
#ifndef LS_DATA_INFO_TABLE_H
#define LS_DATA_INFO_TABLE_H

#include <stdio.h>

#include "data/dataset.h"

/* Rows, columns and targets of a dataset whose `columns` are known. */
ls_status ls_info_table(const ls_dataset *set, const char *title, FILE *to);

#endif
