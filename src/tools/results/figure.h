/*
 * figure.h - how a figure came about. Figures of different kinds are never in one row of a table, never joined in a
 * plot, and never each other's baseline: a rate with simulated compute against a measured device is no speedup.
 */
#ifndef LS_TOOLS_RESULTS_FIGURE_H
#define LS_TOOLS_RESULTS_FIGURE_H

#include "tools/results/results.h"

typedef enum ls_figure {
	LS_FIGURE_MEASURED,
	LS_FIGURE_SIMULATED,
	LS_FIGURE_COMPUTED,           /* from a measured rate, or from published rows */
	LS_FIGURE_COMPUTED_SIMULATED, /* from a rate with simulated compute */
	LS_FIGURE_PREDICTED,
	LS_FIGURE_PUBLISHED,
	LS_FIGURE_KINDS
} ls_figure;

const char *ls_figure_name(ls_figure kind);    /* "measured" */
const char *ls_figure_meaning(ls_figure kind); /* "compute is simulated from a profile, ..." */

/* Of a point's rate and times of steps. */
ls_figure ls_point_figure(const ls_point *point);

/* Of its wall time: that of a bench with a number of epochs and samples is computed from its rate. */
ls_figure ls_point_wall_figure(const ls_point *point);

#endif
