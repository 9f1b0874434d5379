/*
 * recipe_text.h - recipes written in tests.
 */
#ifndef LS_TESTS_RECIPE_TEXT_H
#define LS_TESTS_RECIPE_TEXT_H

#include <string.h>

#include "tools/sweep/recipe.h"
#include "unit/assert_status.h"

#define HEAD "{\"format\": \"lockstep recipe\", \"version\": 2, \"title\": \"t\", \"table\": \"throughput\", "

static inline ls_status parse(ls_sweep_list *list, const char *text, ls_recipe_form form)
{
	return ls_recipe_parse(list, text, strlen(text), form, "mine", "mine.json");
}

/* Reading `text` fails, and the message has all of these. */
static inline void refuses(const char *text, const char *field, const char *reason)
{
	ls_sweep_list list = { .count = 77 };
	assert_int_not_equal(parse(&list, text, 0), LS_OK);
	if (!strstr(ls_last_error(), "mine.json") || !strstr(ls_last_error(), field) ||
	    !strstr(ls_last_error(), reason))
		fail_msg("'%s' does not name the file, '%s' and '%s'", ls_last_error(), field, reason);
	assert_int_equal(list.count, 77);
}

#endif
