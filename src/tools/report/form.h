/*
 * form.h - the published forms of tables. results.json names one ("table"); a sweep that names none gets the one its
 * points fit.
 *
 *     throughput  nodes x devices x batch: throughput and speedup, and a second table of all repeats
 *     epochs      rates as training logs them, epoch and test times, accuracy; and a table of all points
 *     walltime    wall time of whole runs, one row per run, with averages
 *     strategies  baselines, then AllReduce against PS against ideal
 *     accuracy    time and epochs to a test accuracy, one row per seed, with a mean
 */
#ifndef LS_TOOLS_REPORT_FORM_H
#define LS_TOOLS_REPORT_FORM_H

#include "tools/report/study.h"

typedef struct ls_form {
	const char *name;
	void (*tables)(const ls_study *study);
} ls_form;

const ls_form *ls_form_of(const ls_results *results);

void ls_form_throughput(const ls_study *study);
void ls_form_epochs(const ls_study *study);
void ls_form_walltime(const ls_study *study);
void ls_form_strategies(const ls_study *study);
void ls_form_accuracy(const ls_study *study);

/* Machines and versions that measured, each listed once. */
void ls_form_testbed(const ls_study *study, const ls_results_machine *machines, size_t count);

#endif
