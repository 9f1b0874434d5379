/*
 * study.h - the points of a sweep, grouped into lines of plots and tables, with the baseline of each.
 *
 * A line holds the points that differ only in nodes and devices, all of one kind of figure; points of one node with
 * fewer devices begin the line of several nodes. The baseline of a point is the point with one device and otherwise the
 * same job; strategy, wire and links do not matter to one device. Where several hosts have a baseline, a point is
 * compared with that of its first host, as in the published tables.
 */
#ifndef LS_TOOLS_REPORT_STUDY_H
#define LS_TOOLS_REPORT_STUDY_H

#include "tools/report/page.h"
#include "tools/results/figure.h"
#include "tools/results/results.h"

enum { LS_STUDY_POINTS = 5000, LS_STUDY_LABEL = 256 };

typedef struct ls_line {
	const char *heading; /* "batch size = 96", and what else differs between lines but the kind of figure */
	const char *label;   /* shorter: "resnet18, batch 96" */
	const char *brief;   /* the same without the model, where all lines have the same model */
	size_t count;
	const ls_point **points; /* done, by devices; the baseline first where there is one */
	const ls_point *base;    /* NULL: none */
	ls_figure figure;        /* of all its points */
} ls_line;

typedef struct ls_study {
	ls_page *page;
	const ls_results *results;
	size_t line_count;
	ls_line *lines;
	int several_models;
	int by_host;                   /* each host has its own baseline */
	int runs;                      /* points are runs, named by their directories */
	const struct ls_run_log *logs; /* of runs, in the order of their points; NULL: a sweep */
} ls_study;

ls_status ls_study_make(ls_study *study, ls_page *page, const ls_results *results);

/* Whether an earlier line has the point, too. */
int ls_study_seen(const ls_study *study, size_t line, const ls_point *point);

/* NULL: none. */
const ls_point *ls_study_base(const ls_study *study, const ls_point *point);
int ls_study_reads(const ls_study *study, const ls_point *point);      /* text: rates may be shown in tokens/s */
double ls_study_speedup(const ls_study *study, const ls_point *point); /* 0: no baseline */
const char *ls_study_flag(const ls_study *study, const ls_point *point);

/* The same model, or one of the same family: bert-mini and bert-base. */
int ls_model_related(const char *a, const char *b);

/* Samples per second or, for text, tokens per second, as in the published tables of strategies. */
double ls_study_words(const ls_study *study, const ls_point *point);

/* Name of the directory of a run. */
const char *ls_run_name(const ls_point *point);

/* Devices of a node, "4", or of each, "3+2"; where it ran, "lm1+lm6" or "gn[01-03]". */
const char *ls_point_shape(ls_page *page, const ls_point_job *job);
const char *ls_point_hosts(ls_page *page, const ls_results *results, const ls_point *point);
const char *ls_point_host(const ls_results *results, const ls_point *point); /* of its first node */

/* Bullets for the points that are not done, with their reasons. */
void ls_study_missing(const ls_study *study);

#endif
