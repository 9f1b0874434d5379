/*
 * points.h - the list of points of a sweep.
 */
#ifndef LS_TOOLS_SWEEP_POINTS_H
#define LS_TOOLS_SWEEP_POINTS_H

#include <string.h>

#include <lockstep/sweep.h>

#include "tools/sweep/point.h"

/* The forms of a recipe: for two minutes, an hour, and as published. */
typedef enum ls_recipe_form { LS_RECIPE_DEFAULT, LS_RECIPE_QUICK, LS_RECIPE_FULL, LS_RECIPE_FORMS } ls_recipe_form;

/* "default", "quick" or "full": the name in results, and of the last two in recipes. */
const char *ls_recipe_form_name(ls_recipe_form form);

typedef struct ls_sweep_list {
	char name[LS_RESULTS_NAME], table[LS_RESULTS_NAME];
	char title[LS_RESULTS_TEXT], source[LS_RESULTS_TEXT], note[LS_RESULTS_TEXT];
	int64_t warmup, steps, repeat, launches;
	int64_t limit_s; /* of a launch */
	ls_recipe_form form;
	ls_original original; /* of all points, where a block does not say otherwise */
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
