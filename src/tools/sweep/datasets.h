/*
 * datasets.h - which datasets are at hand, found out by asking the command; those that can be downloaded are.
 *
 * A recipe may name several, "mnist|glyphs": the first that can be had is taken, and results say which.
 */
#ifndef LS_TOOLS_SWEEP_DATASETS_H
#define LS_TOOLS_SWEEP_DATASETS_H

#include "tools/results/results.h"

enum { LS_DATASETS_MAX = 32 };

typedef struct ls_datasets {
	const char *program;
	size_t count;
	char name[LS_DATASETS_MAX][LS_RESULTS_NAME];
	char lacking[LS_DATASETS_MAX][LS_RESULTS_TEXT]; /* why it cannot be had; "": it is there */
} ls_datasets;

/* *why is "" when the dataset is there (or none is wanted: ""), and lives as long as the datasets. */
ls_status ls_datasets_find(ls_datasets *datasets, const char *name, const char **why);

/* The first of "a|b" that is there, else the last. */
ls_status ls_datasets_choose(ls_datasets *datasets, const char *names, char *out, size_t size);

#endif
