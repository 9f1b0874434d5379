/*
 * arguments.h - check the options that a recipe adds to its commands.
 */
#ifndef LS_TOOLS_SWEEP_ARGUMENTS_H
#define LS_TOOLS_SWEEP_ARGUMENTS_H

#include "json/fields.h"

/* Are all words of "--lr 0.1 --nesterov" options that a recipe may set and that a point of this kind ("bench" or
 * "train") has, with their values? The error names the recipe, the field and the option. */
ls_status ls_recipe_arguments_check(const ls_json_place *at, const char *kind, const char *arguments);

/* Does every model have the options among `arguments`? --layers is not an option of resnet18. */
ls_status ls_recipe_arguments_fit(const ls_json_place *at, const char *arguments, const char *model);

/* Whether `lockstep bench` has the option, too; *words is what it takes, with its value: 1 or 2. */
int ls_recipe_argument_is_of_bench(const char *word, int *words);

/* The value of --name among `arguments`, the last one; "on" for a flag. */
ls_status ls_recipe_argument_of(const char *arguments, const char *name, char *out, size_t size, int *found);

#endif
