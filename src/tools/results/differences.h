/*
 * differences.h - in what a measurement differs from the published run that it repeats.
 *
 * A recipe records the settings of the original ("original": { "optimizer": "adamw", ... }); results.json keeps them
 * for each point beside the point's own (ls_point_setting). Differences are computed from these and from what was
 * measured (launches that were made, simulated compute), so that nobody has to write them down.
 */
#ifndef LS_TOOLS_RESULTS_DIFFERENCES_H
#define LS_TOOLS_RESULTS_DIFFERENCES_H

#include "tools/results/results.h"

typedef struct ls_difference {
	char name[LS_RESULTS_SETTING]; /* an option's, "clip-norm", or "compute" */
	char original[LS_RESULTS_NAME], ours[LS_RESULTS_NAME];
	size_t points; /* number of points that differ like this */
} ls_difference;

/* Whether the recipe recorded anything about the original of a done point: otherwise "no differences" says nothing. */
int ls_results_has_original(const ls_results *results);

/* The differences of one point, at most `max`, in the order of its settings; returns their number. A point without
 * settings of an original has none. */
size_t ls_point_differences(const ls_point *point, ls_difference *out, size_t max);

/* The distinct differences over all done points, at most `max`, those with the same name
 * together; returns their number. */
size_t ls_results_differences(const ls_results *results, ls_difference *out, size_t max);

#endif
