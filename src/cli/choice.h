/*
 * choice.h - options whose values have names: from the typed name to its number.
 */
#ifndef LS_CLI_CHOICE_H
#define LS_CLI_CHOICE_H

#include "args.h"

/* The number of the value of --setting that was typed, 0 where none was; -1, with a message, for an unknown one. */
int ls_args_choose(const ls_args *args, const char *setting, const char *typed);

/* Values of --resize in the order of ls_resize, and of all other rows by ls_setting_value_at(). */
int ls_resize_value_at(const ls_setting *row, size_t i, ls_setting_value *out);

#endif
