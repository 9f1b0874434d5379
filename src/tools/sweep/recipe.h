/*
 * recipe.h - a published table as a list of points, read from JSON; recipes/README.md describes the format.
 */
#ifndef LS_TOOLS_SWEEP_RECIPE_H
#define LS_TOOLS_SWEEP_RECIPE_H

#include <lockstep/sweep.h>

#include "tools/sweep/points.h"

/* The recipes compiled in, in the order of their names. Made by cmake/embed.cmake. */
extern const ls_recipe ls_recipes_built_in[];
extern const size_t ls_recipes_built_in_count;

/* `name` is the name of the sweep in the results, `label` names the text in errors. On failure the output is unchanged.
 */
ls_status ls_recipe_parse(ls_sweep_list *out, const void *text, size_t bytes, ls_recipe_form form, const char *name,
			  const char *label);

/* A built-in recipe by name, else a file. */
ls_status ls_recipe_open(ls_sweep_list *out, const char *recipe, ls_recipe_form form);

#endif
