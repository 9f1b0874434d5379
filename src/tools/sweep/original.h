/*
 * original.h - the settings of a published run, as a recipe records them under "original", and those of a point.
 *
 *     "original": { "optimizer": "adamw", "weight-decay": 0.01, "clip-norm": 1, "launches": 7 }
 *
 * Names are those of options of lockstep train and lockstep bench, values are checked as the options' are. The settings
 * of a point are resolved: a default is the value that the command uses.
 */
#ifndef LS_TOOLS_SWEEP_ORIGINAL_H
#define LS_TOOLS_SWEEP_ORIGINAL_H

#include "tools/sweep/points.h"
#include "json/fields.h"

/* Read object.original, if there is one; names that `out` has already get the new value. Errors name the field. */
ls_status ls_original_read(const ls_json_place *at, const json_t *object, ls_original *out);

/* The settings of the original beside those of the point, into the result. */
ls_status ls_original_settings(const ls_sweep_list *list, const ls_sweep_point *point, ls_point *result);

#endif
