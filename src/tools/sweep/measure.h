/*
 * measure.h - measure one point: where it runs, whether its devices are replayed, and what came out.
 */
#ifndef LS_TOOLS_SWEEP_MEASURE_H
#define LS_TOOLS_SWEEP_MEASURE_H

#include "tools/sweep/datasets.h"
#include "tools/sweep/lab.h"
#include "tools/sweep/points.h"

/* What all points of a sweep are measured with. */
typedef struct ls_sweep_environment {
	const char *program, *hosts; /* hosts: NULL without */
	const ls_sweep_list *list;
	char out[4096];
	ls_lab lab;
	ls_datasets datasets;
	int cores;
	void (*tick)(void *context);
	void *context;
} ls_sweep_environment;

/* Whether this machine has too few cores for the point's devices, so that they sleep. */
int ls_measure_replays(const ls_sweep_environment *environment, const ls_sweep_point *point);

/*
 * Into `result`, which has key and job of the point: done, skipped or failed, and then why. LS_EINTERRUPTED: stopped;
 * other failures are those of this machine (memory, disk), after which nothing else would go well either.
 */
ls_status ls_measure(ls_sweep_environment *environment, const ls_sweep_point *point, ls_point *result);

#endif
