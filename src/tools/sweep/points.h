/*
 * points.h - what a sweep is to measure.
 */
#ifndef LS_TOOLS_SWEEP_POINTS_H
#define LS_TOOLS_SWEEP_POINTS_H

#include <lockstep/sweep.h>

#include "tools/sweep/point.h"

typedef struct ls_sweep_list {
	char name[LS_RESULTS_NAME], table[LS_RESULTS_NAME];
	char title[LS_RESULTS_TEXT], source[LS_RESULTS_TEXT], note[LS_RESULTS_TEXT];
	int64_t warmup, steps, repeat;
	int64_t limit_s; /* of a point */
	int64_t quick;
	size_t count;
	ls_sweep_point *points; /* keys are unique */
} ls_sweep_list;

/* How often a point is measured. */
static inline int64_t ls_sweep_list_repeat(const ls_sweep_list *list, const ls_sweep_point *point)
{
	return point->repeat > 0 ? point->repeat : list->repeat;
}

/* Of a recipe, of which lists choose points, or of lists that are multiplied out. */
ls_status ls_sweep_list_make(ls_sweep_list *out, const ls_sweep_options *options);
void ls_sweep_list_release(ls_sweep_list *list);

/* One more, unless it is there already. */
ls_status ls_sweep_list_add(ls_sweep_list *list, const ls_sweep_point *point);
/* Points may have become the same since: the first of each stays. */
void ls_sweep_list_unite(ls_sweep_list *list);

#endif
