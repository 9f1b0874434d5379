/*
 * report.h - tables and plots of what was measured.
 *
 *     const char *paths[] = { "sweeps/bert/results.json", "runs/first" };
 *     ls_report_options options = LS_REPORT_OPTIONS_INIT;
 *     options.paths = paths;
 *     options.path_count = 2;
 *     options.compare = "published";
 *     ls_report_result result;
 *     if (ls_report_write(&options, &result) == LS_OK)
 *             printf("%s\n", result.path);
 *
 * A path is the results.json of a sweep or a directory that holds one, the directory of a run (ls_train_options.run),
 * or a forecast that `lockstep plan --json` has written. Tables have the forms of the published ones; the HTML page
 * adds plots and needs no other file. Figures that are too good, as a speedup above ideal or a rate beyond the
 * bandwidth of the links, are marked and explained.
 */
#ifndef LOCKSTEP_REPORT_H
#define LOCKSTEP_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_report_options {
	size_t size; /* set by LS_REPORT_OPTIONS_INIT */
	const char *const *paths;
	size_t path_count; /* 1 to 64 */
	const char *out;   /* the HTML page; NULL: report.html in the first path, or next to it where it is a file */
	const char *title; /* NULL: the title of the only sweep */
	/* Figures of other trainers beside ours: "published" for all that are built in, the name of one set, or a CSV
	 * file in the format of published/README.md; NULL: none. */
	const char *compare;
	int brief;  /* Markdown: without the tables of all repeats, which the page folds */
	int unused; /* fills the struct up; stays 0 */
} ls_report_options;
#define LS_REPORT_OPTIONS_INIT                                                                                         \
	{                                                                                                              \
		.size = sizeof(ls_report_options)                                                                      \
	}

typedef struct ls_report_result {
	char path[4096]; /* of the page */
	size_t sweeps, runs, forecasts;
	size_t points, done;  /* of sweeps */
	size_t simulated;     /* points among those done whose compute is simulated */
	size_t flags;         /* figures that are marked, published ones included */
	size_t published;     /* those of them that are published figures */
	uint64_t reserved[8]; /* 0 */
} ls_report_result;

/* Write the HTML page; on failure there is none. */
LS_API ls_status ls_report_write(const ls_report_options *options, ls_report_result *result);

/* Print only the tables, as Markdown; options.out is ignored. */
LS_API ls_status ls_report_print(const ls_report_options *options, FILE *to);

/* The same for one path with `brief`: the table that a sweep prints at its end. */
LS_API ls_status ls_report_markdown(const char *path, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
