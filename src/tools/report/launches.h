/*
 * launches.h - launches of a point in tables: how many, how far they and their repeats differ, and which
 * failed or ran on a busy machine.
 */
#ifndef LS_TOOLS_REPORT_LAUNCHES_H
#define LS_TOOLS_REPORT_LAUNCHES_H

#include "tools/report/study.h"

/* Columns of ls_grid_launches() and of ls_grid_repeats(). */
#define LS_LAUNCH_HEADS "Launches", "Spread within", "Spread between"
#define LS_REPEAT_HEADS "Launch", "Samples/s", "Load", "Steal", "State"

/* "2 of 3", with a note on those that failed or were busy; spreads where there are several
 * repeats, several launches. */
void ls_grid_launches(ls_grid *grid, const ls_point *point);

/* Adds the cells that say which point a row is of. */
typedef void ls_place_fn(const ls_study *study, ls_grid *grid, const ls_point *point);

/* A row for each repeat, and for each launch that failed. */
void ls_grid_repeats(const ls_study *study, ls_grid *grid, const ls_point *point, ls_place_fn *place);

/* Whether a repeat counts: those of busy launches do not where there is a quiet one. */
int ls_point_repeat_counts(const ls_point *point, size_t repeat);

/* What is in doubt about the launches of a point, as a note; NULL: nothing. */
const char *ls_point_launch_note(ls_page *page, const ls_point *point);

/* A folded table of all repeats, where there are several or launches to explain. For forms whose rows are not points, a
 * table of launches and spreads before it. */
void ls_form_repeats(const ls_study *study);
void ls_form_launches(const ls_study *study);

#endif
