/*
 * The recipes that are built in: they can be read in all forms, and their full forms have every published row.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tools/results/published.h"
#include "tools/sweep/recipe.h"
#include "unit/test_main.h"

static void test_built_in(void **state)
{
	(void)state;
	static const char *const names[] = { "distml-resnet", "distml-sst5",  "distml-strategies",
					     "oneflow-bert",  "rcc-bigmnist", "rcc-mnist" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int form = 0; form < LS_RECIPE_FORMS; form++) {
			ls_sweep_list list;
			if (ls_recipe_open(&list, names[i], (ls_recipe_form)form) != LS_OK)
				fail_msg("%s", ls_last_error());
			assert_true(list.count > 0);
			assert_int_equal(list.form, form);
			assert_string_equal(list.name, names[i]);
			ls_sweep_list_release(&list);
		}
	assert_int_equal(ls_recipes_built_in_count, sizeof(names) / sizeof(names[0]));
	ls_sweep_list list;
	assert_int_equal(ls_recipe_open(&list, "oneflow-bart", 0), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "oneflow-bert"));
}

/* The point of a full form that repeats a published row: model, data, devices and batch. */
static int has_row(const ls_sweep_list *list, const ls_published_row *row)
{
	for (size_t i = 0; i < list->count; i++) {
		const ls_point_job *j = &list->points[i].job;
		int64_t batch = (int64_t)row->batch;
		if (!strcmp(row->data, "mnist") && row->steps == 625 && row->batch == 64) /* which is batch 48 */
			batch = 48;
		if (!strcmp(j->model, row->model) && !strcmp(j->shape, row->shape) && j->batch == batch &&
		    (row->data[0] == '\0' || !strcmp(j->data, row->data)))
			return 1;
	}
	return 0;
}

/* Every row of every published table that names recipes is a point of one of them. */
static void test_published_points(void **state)
{
	(void)state;
	ls_arena arena = { 0 };
	ls_published *sets;
	size_t count, rows = 0;
	assert_int_equal(ls_published_read(&sets, &count, &arena, "published", 0), LS_OK);
	for (size_t i = 0; i < count; i++) {
		ls_sweep_list lists[8] = { 0 };
		char names[256], *save = NULL;
		size_t n = 0;
		snprintf(names, sizeof(names), "%s", sets[i].recipes);
		for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
			assert_int_equal(ls_recipe_open(&lists[n++], name, LS_RECIPE_FULL), LS_OK);
		for (size_t k = 0; n > 0 && k < sets[i].row_count; k++, rows++) {
			int found = 0;
			for (size_t m = 0; m < n; m++)
				found |= has_row(&lists[m], &sets[i].rows[k]);
			if (!found)
				fail_msg("%s: no recipe of '%s' has %s on %s, batch %g", sets[i].name, sets[i].recipes,
					 sets[i].rows[k].model, sets[i].rows[k].shape, sets[i].rows[k].batch);
		}
		while (n > 0)
			ls_sweep_list_release(&lists[--n]);
	}
	assert_true(rows > 100);
	ls_arena_release(&arena);
}

/* "gn[01,06]" and "gn[01-02,07-08]" as the nodes of a point. Two published sets have one number too few or a dash too
 * many; notes in the recipe say how they are read. */
static void nodes_of(const char *hosts, char *out, size_t size)
{
	const char *at = strncmp(hosts, "gn", 2) ? "" : hosts + 2;
	size_t used = 0;
	long from, to;

	if (!strcmp(hosts, "gn[03-07-09]"))
		at = "[03,07-09";
	if (!strcmp(hosts, "gn[03,05]"))
		at = "[03-05";
	out[0] = '\0';
	while (*at != '\0' && *at != ']') {
		at += !(*at >= '0' && *at <= '9');
		from = to = strtol(at, (char **)&at, 10);
		if (*at == '-')
			to = strtol(at + 1, (char **)&at, 10);
		for (; from <= to; from++)
			used += (size_t)snprintf(out + used, size - used, "%s%ld", used ? "," : "", from);
	}
}

/* Each published set of nodes is a point; a set that is there twice is measured twice. */
static void test_published_nodes(void **state)
{
	(void)state;
	ls_arena arena = { 0 };
	ls_published *sets;
	size_t count, seen = 0;
	ls_sweep_list mnist, big;
	assert_int_equal(ls_published_read(&sets, &count, &arena, "rcc-cnn", 0), LS_OK);
	assert_int_equal(ls_recipe_open(&mnist, "rcc-mnist", LS_RECIPE_FULL), LS_OK);
	assert_int_equal(ls_recipe_open(&big, "rcc-bigmnist", LS_RECIPE_FULL), LS_OK);
	for (size_t k = 0; k < sets[0].row_count; k++) {
		const ls_published_row *row = &sets[0].rows[k];
		const ls_sweep_list *list = strcmp(row->data, "mnist") ? &big : &mnist;
		char on[64];
		int64_t times = 0, launches = 0;
		nodes_of(row->hosts, on, sizeof(on));
		for (size_t i = 0; i < sets[0].row_count; i++)
			times += !strcmp(sets[0].rows[i].hosts, row->hosts) &&
				 !strcmp(sets[0].rows[i].shape, row->shape) && !strcmp(sets[0].rows[i].data, row->data);
		for (size_t i = 0; i < list->count; i++)
			if (!strcmp(list->points[i].on, on) && !strcmp(list->points[i].job.shape, row->shape))
				launches = ls_sweep_list_launches(list, &list->points[i]);
		seen += on[0] != '\0';
		if (on[0] != '\0' && launches != times)
			fail_msg("%s on %s (%s): %d times, the recipe %d", row->data, row->hosts, on, (int)times,
				 (int)launches);
	}
	assert_true(seen > 40);
	ls_sweep_list_release(&mnist);
	ls_sweep_list_release(&big);
	ls_arena_release(&arena);
}

TEST_MAIN(test_built_in, test_published_points, test_published_nodes)
