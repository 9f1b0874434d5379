/*
 * datasets.c - runs lockstep data info and, if that fails, lockstep data get.
 */
#include "tools/sweep/datasets.h"

#include <stdio.h>
#include <string.h>

#include "tools/sweep/child.h"

static const double info_s = 120, get_s = 300;

static ls_status ask(const ls_datasets *s, const char *verb, const char *name, double limit_s, int *code, char *why)
{
	char *argv[] = { (char *)s->program, (char *)"data", (char *)verb, (char *)name, NULL };
	ls_child child;

	LS_TRY(ls_child_run(&child, &(ls_child_options){ .argv = argv, .limit_s = limit_s }));
	*code = child.code;
	ls_child_reason(&child, why, LS_RESULTS_TEXT);
	ls_child_release(&child);
	return LS_OK;
}

/* bigmnist is generated from mnist while it is read. */
static const char *source_of(const char *name)
{
	return !strcmp(name, "bigmnist") ? "mnist" : name;
}

static ls_status find_out(ls_datasets *s, const char *name, char *lacking)
{
	char why[LS_RESULTS_TEXT];
	int code = 0;

	lacking[0] = '\0';
	LS_TRY(ask(s, "info", name, info_s, &code, why));
	if (code == 0)
		return LS_OK;
	LS_TRY(ask(s, "get", source_of(name), get_s, &code, why));
	if (code == 0)
		LS_TRY(ask(s, "info", name, info_s, &code, why));
	if (code != 0)
		snprintf(lacking, LS_RESULTS_TEXT, "dataset %s is not available: %.180s", name, why);
	return LS_OK;
}

ls_status ls_datasets_find(ls_datasets *s, const char *name, const char **why)
{
	size_t i = 0;

	*why = "";
	if (name[0] == '\0')
		return LS_OK;
	while (i < s->count && strcmp(s->name[i], name) != 0)
		i++;
	if (i == LS_DATASETS_MAX)
		return ls_fail(LS_EINVALID, "a sweep may use at most %d datasets", LS_DATASETS_MAX);
	if (i == s->count) {
		LS_TRY(find_out(s, name, s->lacking[i]));
		snprintf(s->name[i], sizeof(s->name[i]), "%s", name);
		s->count++;
	}
	*why = s->lacking[i];
	return LS_OK;
}

ls_status ls_datasets_choose(ls_datasets *s, const char *names, char *out, size_t size)
{
	const char *why = "";

	do {
		size_t length = strcspn(names, "|");
		snprintf(out, size, "%.*s", (int)length, names);
		names += length;
		names += *names == '|';
		if (*names == '\0') /* the last is taken in any case */
			return LS_OK;
		LS_TRY(ls_datasets_find(s, out, &why));
	} while (why[0] != '\0');
	return LS_OK;
}
