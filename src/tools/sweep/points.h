/*
 * points.h - the list of points of a sweep.
 */
#ifndef LS_TOOLS_SWEEP_POINTS_H
#define LS_TOOLS_SWEEP_POINTS_H

#include <string.h>

#include <lockstep/sweep.h>

#include "tools/sweep/point.h"

typedef struct ls_sweep_list {
	char name[LS_RESULTS_NAME], table[LS_RESULTS_NAME];
	char title[LS_RESULTS_TEXT], source[LS_RESULTS_TEXT], note[LS_RESULTS_TEXT];
	int64_t warmup, steps, repeat, launches;
	int64_t limit_s; /* of a launch */
	int64_t quick;
	size_t count;
	ls_sweep_point *points; /* keys are unique */
} ls_sweep_list;

/* Number of repeats of a point. */
static inline int64_t ls_sweep_list_repeat(const ls_sweep_list *list, const ls_sweep_point *point)
{
	return point->repeat > 0 ? point->repeat : list->repeat;
}

/* Number of processes that measure a point, one after another. Every repeat of training is one. */
static inline int64_t ls_sweep_list_launches(const ls_sweep_list *list, const ls_sweep_point *point)
{
	int64_t launches = point->launches > 0 ? point->launches : list->launches;

	if (launches <= 1 && !strcmp(point->job.kind, "train"))
		return ls_sweep_list_repeat(list, point);
	return launches > 1 ? launches : 1;
}

/* Whether a launch on a busy machine is repeated: where launches were asked for. */
static inline int ls_sweep_list_retries(const ls_sweep_list *list, const ls_sweep_point *point)
{
	return (point->launches > 0 ? point->launches : list->launches) > 1;
}

/* Points of a recipe, among which lists choose; or of lists, multiplied out. */
ls_status ls_sweep_list_make(ls_sweep_list *out, const ls_sweep_options *options);
void ls_sweep_list_release(ls_sweep_list *list);

/* Append a point, unless it is in the list already. */
ls_status ls_sweep_list_add(ls_sweep_list *list, const ls_sweep_point *point);
/* Remove points that have become equal to earlier ones. */
void ls_sweep_list_deduplicate(ls_sweep_list *list);

#endif
