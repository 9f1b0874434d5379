/*
 * datasets.h - which datasets are available; missing ones are downloaded where possible.
 *
 * A recipe may name several, "mnist|glyphs": the first available one is taken and recorded in the results.
 */
#ifndef LS_TOOLS_SWEEP_DATASETS_H
#define LS_TOOLS_SWEEP_DATASETS_H

#include "tools/results/results.h"

enum { LS_DATASETS_MAX = 32 };

typedef struct ls_datasets {
	const char *program;
	size_t count;
	char name[LS_DATASETS_MAX][LS_RESULTS_NAME];
	char lacking[LS_DATASETS_MAX][LS_RESULTS_TEXT]; /* why it is not available; "": it is */
} ls_datasets;

/* *why is "" when the dataset is available, or when `name` is ""; it is valid as long as `datasets`. */
ls_status ls_datasets_find(ls_datasets *datasets, const char *name, const char **why);

/* The first of "a|b" that is available, else the last. */
ls_status ls_datasets_choose(ls_datasets *datasets, const char *names, char *out, size_t size);

#endif
