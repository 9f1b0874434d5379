/*
 * measure.h - measure one point: choose where it runs and whether compute is simulated, and read the result.
 */
#ifndef LS_TOOLS_SWEEP_MEASURE_H
#define LS_TOOLS_SWEEP_MEASURE_H

#include "tools/sweep/datasets.h"
#include "tools/sweep/lab.h"
#include "tools/sweep/points.h"

/* Common to all points of a sweep. */
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

/* Whether the compute of a point is simulated, because this machine has too few cores for its devices. */
int ls_measure_replays(const ls_sweep_environment *environment, const ls_sweep_point *point);

/*
 * Fills in `result`, which has the key and job of the point: done, or skipped or failed with a reason. LS_EINTERRUPTED:
 * stopped. Other errors are those of this machine (memory, disk) and end the sweep.
 */
ls_status ls_measure(ls_sweep_environment *environment, const ls_sweep_point *point, ls_point *result);

#endif
