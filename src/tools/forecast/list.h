/*
 * list.h - options that are lists of short words, "1gbit,10gbit".
 */
#ifndef LS_TOOLS_FORECAST_LIST_H
#define LS_TOOLS_FORECAST_LIST_H

#include <stdint.h>

#include "base/status.h"

enum { LS_LIST_MAX = 64, LS_LIST_TEXT = 32 };

typedef struct ls_list {
	int count;
	char text[LS_LIST_MAX][LS_LIST_TEXT];
} ls_list;

/* `name` is the option's, for errors. */
ls_status ls_list_split(ls_list *out, const char *name, const char *text);

/* A word as a whole number from 1 to `most`. */
ls_status ls_list_number(const char *name, const char *text, double most, int64_t *out);

#endif
