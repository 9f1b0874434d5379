/*
 * shelf.h - which datasets are at hand, found out by asking the command; those that can be downloaded are.
 *
 * A recipe may name several, "mnist|glyphs": the first that can be had is taken, and results say which.
 */
#ifndef LS_TOOLS_SWEEP_SHELF_H
#define LS_TOOLS_SWEEP_SHELF_H

#include "tools/results/results.h"

enum { LS_SHELF_NAMES = 32 };

typedef struct ls_shelf {
	const char *program;
	size_t count;
	char name[LS_SHELF_NAMES][LS_RESULTS_NAME];
	char lacking[LS_SHELF_NAMES][LS_RESULTS_TEXT]; /* why it cannot be had; "": it is there */
} ls_shelf;

/* *why is "" when the dataset is there (or none is wanted: ""), and lives as long as the shelf. */
ls_status ls_shelf_look(ls_shelf *shelf, const char *name, const char **why);

/* The first of "a|b" that is there, else the last. */
ls_status ls_shelf_choose(ls_shelf *shelf, const char *names, char *out, size_t size);

#endif
