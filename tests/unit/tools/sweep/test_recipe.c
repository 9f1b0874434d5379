/*
 * Recipes: lists are multiplied out, equal points are merged, and errors name file, field and reason. All recipes that
 * are built in can be read, in all forms.
 */
#include "tools/sweep/recipe.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/train.h>

#include "base/array.h"
#include "tools/results/differences.h"
#include "tools/results/published.h"
#include "tools/sweep/original.h"
#include "unit/test_main.h"

#define HEAD "{\"format\": \"lockstep recipe\", \"version\": 2, \"title\": \"t\", \"table\": \"throughput\", "

static ls_status parse(ls_sweep_list *list, const char *text, ls_recipe_form form)
{
	return ls_recipe_parse(list, text, strlen(text), form, "mine", "mine.json");
}

/* Reading `text` fails, and the message has all of these. */
static void refuses(const char *text, const char *field, const char *reason)
{
	ls_sweep_list list = { .count = 77 };
	assert_int_not_equal(parse(&list, text, 0), LS_OK);
	if (!strstr(ls_last_error(), "mine.json") || !strstr(ls_last_error(), field) ||
	    !strstr(ls_last_error(), reason))
		fail_msg("'%s' does not name the file, '%s' and '%s'", ls_last_error(), field, reason);
	assert_int_equal(list.count, 77);
}

static void test_lists_multiply(void **state)
{
	(void)state;
	ls_sweep_list list;
	assert_int_equal(
		parse(&list,
		      HEAD "\"points\": [{\"model\": [\"cnn\", \"mlp\"], \"batch_per_device\": [8, 16], \"nodes\": 2, "
			   "\"devices\": [1, \"3+2\"], \"rate\": \"1gbit\"}]}",
		      0),
		LS_OK);
	assert_int_equal(list.count, 8);
	assert_int_equal(list.warmup, 20);
	assert_int_equal(list.steps, 100);
	assert_int_equal(list.repeat, 7);
	const ls_point_job *first = &list.points[0].job, *last = &list.points[7].job;
	assert_string_equal(first->model, "cnn");
	assert_string_equal(first->shape, "1+1");
	assert_int_equal(first->nodes, 2);
	assert_int_equal(first->devices, 2);
	assert_int_equal(first->batch, 8);
	assert_string_equal(first->rate, "1gbit");
	assert_string_equal(last->model, "mlp");
	assert_string_equal(last->shape, "3+2");
	assert_int_equal(last->devices, 5);
	assert_int_equal(last->batch, 16);
	for (size_t i = 0; i < list.count; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(list.points[i].key, list.points[k].key);
	ls_sweep_list_release(&list);
}

/* Of two rates on one node there is one point; with a server beside it there are two. */
static void test_same_points_are_one(void **state)
{
	(void)state;
	ls_sweep_list list;
	assert_int_equal(parse(&list,
			       HEAD "\"points\": [{\"model\": \"cnn\", \"rate\": [\"1gbit\", \"10gbit\"], "
				    "\"strategy\": [\"allreduce\", \"ps\"]}]}",
			       0),
			 LS_OK);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.points[0].job.strategy, "local");
	assert_string_equal(list.points[0].job.rate, "");
	assert_string_equal(list.points[1].job.strategy, "ps");
	assert_int_equal(list.points[1].job.servers, 1);
	assert_string_equal(list.points[2].job.rate, "10gbit");
	ls_sweep_list_release(&list);
}

/* Every strategy that --strategy knows can be swept; those with servers get one. */
static void test_every_strategy_is_a_point(void **state)
{
	(void)state;
	ls_sweep_list list;
	assert_int_equal(parse(&list,
			       HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"strategy\": [\"allreduce\", "
				    "\"ps\", \"ps-async\", \"mpi\"]}]}",
			       0),
			 LS_OK);
	for (size_t i = 0; ls_strategy_at(i); i++) {
		assert_true(i < list.count);
		assert_string_equal(list.points[i].job.strategy, ls_strategy_at(i)->name);
		assert_int_equal(list.points[i].job.servers, ls_strategy_at(i)->has_servers);
		assert_non_null(strstr(list.points[i].key, ls_strategy_at(i)->name));
	}
	assert_int_equal(list.count, 4);
	ls_sweep_list_release(&list);
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"strategy\": \"mpi\", \"wire\": \"bf16\"}]}",
		"points[0]", "strategy mpi sums fp32: leave out wire bf16");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"strategy\": \"ps-asinc\"}]}", "points[0]",
		"unknown strategy 'ps-asinc'; did you mean 'ps-async'?");
}

static void test_quick_overrides(void **state)
{
	(void)state;
	static const char text[] =
		HEAD "\"steps\": 50, \"points\": [{\"model\": \"cnn\", \"batch_per_device\": [1, 2]}], "
		     "\"quick\": {\"repeat\": 2, \"points\": [{\"model\": \"mlp\"}, "
		     "{\"model\": \"cnn\", \"repeat\": 5}]}}";
	ls_sweep_list list;
	assert_int_equal(parse(&list, text, 1), LS_OK);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.form, LS_RECIPE_QUICK);
	assert_int_equal(ls_sweep_list_repeat(&list, &list.points[0]), 2);
	assert_int_equal(ls_sweep_list_repeat(&list, &list.points[1]), 5);
	assert_int_equal(list.repeat, 2);
	assert_int_equal(list.points[0].job.steps, 50);
	assert_string_equal(list.points[0].job.model, "mlp");
	ls_sweep_list_release(&list);
	assert_int_equal(parse(&list, text, 0), LS_OK);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.repeat, 7);
	ls_sweep_list_release(&list);
	assert_int_not_equal(parse(&list, HEAD "\"points\": [{\"model\": \"cnn\"}]}", 1), LS_OK);
	assert_non_null(strstr(ls_last_error(), "quick is missing: this recipe has no quick form"));
	assert_int_not_equal(parse(&list, text, LS_RECIPE_FULL), LS_OK);
	assert_non_null(strstr(ls_last_error(), "full is missing: this recipe has no full form"));
}

/* Three forms with numbers and points of their own; an error in one is found when another is asked for. */
static void test_forms(void **state)
{
	(void)state;
	static const char text[] = HEAD "\"repeat\": 2, \"points\": [{\"model\": \"cnn\"}], "
					"\"quick\": {\"steps\": 3, \"points\": [{\"model\": \"mlp\"}]}, "
					"\"full\": {\"launches\": 7, \"points\": [{\"model\": \"resnet18\"}]}}";
	static const char *const models[] = { "cnn", "mlp", "resnet18" };
	static const int64_t steps[] = { 100, 3, 100 }, launches[] = { 1, 1, 7 }, limits[] = { 86400, 300, 86400 };
	for (int form = 0; form < LS_RECIPE_FORMS; form++) {
		ls_sweep_list list;
		assert_int_equal(parse(&list, text, (ls_recipe_form)form), LS_OK);
		assert_int_equal(list.form, form);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.points[0].job.model, models[form]);
		assert_int_equal(list.points[0].job.steps, steps[form]);
		assert_int_equal(list.repeat, 2);
		assert_int_equal(list.launches, launches[form]);
		assert_int_equal(list.limit_s, limits[form]);
		ls_sweep_list_release(&list);
	}
	refuses(HEAD "\"points\": [{\"model\": \"cnn\"}], \"full\": {\"points\": [{\"batch_per_device\": 3}]}}",
		"full.points[0]", "no model");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\"}], \"full\": {\"launches\": 0}}", "full.launches", "between 1");
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.full = 1;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "name the recipe"));
	o.recipe = "rcc-mnist", o.quick = 1;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "leave one out"));
}

#define TRAIN HEAD "\"points\": [{\"model\": \"mlp\", \"kind\": \"train\", "

/* `arguments` of a block that trains, refused with a message about `option`. */
static void refuses_arguments(const char *arguments, const char *option, const char *why)
{
	char text[1024], expected[256];
	snprintf(text, sizeof(text), TRAIN "\"arguments\": \"%s\"}]}", arguments);
	snprintf(expected, sizeof(expected), "points[0].arguments has %s", option);
	refuses(text, expected, why);
}

/* A recipe from a stranger must not write files, read files or start processes on other hosts. */
static void test_arguments(void **state)
{
	(void)state;
	ls_sweep_list list;
	const char *fine = TRAIN "\"epochs\": 1, \"data\": \"glyphs\", \"arguments\": "
				 "\"--lr 0.1 --nesterov\\t--seed=7 --share '3:2' --log-every --run\"}]}";
	assert_int_equal(parse(&list, fine, 0), LS_OK); /* --run is a value there: the command refuses that number */
	ls_sweep_list_release(&list);
	static const char *const refused[] = {
		"--profile-out", "--run",   "--out",    "--init", "--vocab", "--data-dir",
		"--hosts",       "--trace", "--resume", "--json", "--list",  "--replay",
		"--profile-o",   "--ru",    "-r",       "-o",     "--",      "word"
	};
	for (size_t i = 0; i < LS_COUNT(refused); i++) {
		char arguments[128], quoted[64];
		snprintf(quoted, sizeof(quoted), "'%s'", refused[i]);
		snprintf(arguments, sizeof(arguments), "--lr 1 %s x", refused[i]);
		refuses_arguments(arguments, quoted, "which a recipe may not set");
		snprintf(arguments, sizeof(arguments), "--nesterov\\t'%s=/x'", refused[i]);
		refuses_arguments(arguments, quoted, "which a recipe may not set");
		snprintf(arguments, sizeof(arguments), "--cased\\n%s", refused[i]);
		refuses_arguments(arguments, quoted, "which a recipe may not set");
	}
	refuses_arguments("--nesterov=1", "'--nesterov=1'", "takes no value");
	refuses_arguments("--lr-mni 3", "'--lr-mni'", "not an option; did you mean '--lr-min'?");
	refuses_arguments("--samples 3", "--samples", "field of its own, \"samples\"");
	refuses_arguments("--bat 3", "'--bat'", "not an option; did you mean '--batch'?");
	refuses(HEAD "\"points\": [{\"model\": \"mlp\"}, {\"model\": \"mlp\", \"arguments\": \"--seed 3 --schedule "
		     "constant\"}]}",
		"points[1].arguments has '--schedule', which lockstep bench does not have", "\"kind\": \"train\"");
	refuses(HEAD "\"points\": [{\"model\": \"mlp\", \"arguments\": [\"--seed\", \"3\"]}]}", "points[0].arguments",
		"is a list, not text");
	refuses("{\"format\": \"lockstep recipe\", \"version\": 2, \"table\": \"throughput\"}", "title", "is missing");
	refuses("{\"format\": \"lockstep recipe\", \"version\": 2, \"title\": \"\"}", "title", "is empty");
	refuses(TRAIN "\"arguments\": \"--lr\"}]}", "points[0].arguments ends with --lr", "value");
	refuses(TRAIN "\"arguments\": \"--lr '1\"}]}", "points[0].", "quotation");
}

static void test_malformed(void **state)
{
	(void)state;
	refuses("", "mine.json:1", "JSON");
	refuses("{\n\"a\": }", "mine.json:2", "JSON");
	refuses("[]", "format", "lockstep recipe");
	refuses("{\"format\": \"lockstep recipe\", \"version\": 3}", "version", "3");
	refuses(HEAD "\"repeats\": 3, \"points\": []}", "repeats", "did you mean 'repeat'");
	refuses(HEAD "\"points\": [{\"model\": \"mlp\", \"arguments\": \"--seed 1 --batch-per-device=64\"}]}",
		"arguments", "field of its own");
	refuses(HEAD "\"launches\": 0, \"points\": [{\"model\": \"cnn\"}]}", "launches", "between 1");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"launches\": 0}]}", "points[0].launches", "between 1");
	refuses(HEAD "\"repeat\": 0, \"points\": [{\"model\": \"cnn\"}]}", "repeat", "between 1");
	refuses(HEAD "\"steps\": 1.5, \"points\": [{\"model\": \"cnn\"}]}", "steps", "whole number");
	refuses(HEAD "\"points\": 3}", "points", "list");
	refuses(HEAD "\"points\": []}", "points", "list");
	refuses(HEAD "\"points\": [3]}", "points[0]", "not an object");
	refuses(HEAD "\"points\": [{}]}", "points[0]", "no model");
	refuses(HEAD "\"points\": [{\"model\": []}]}", "points[0].model", "empty list");
	refuses(HEAD "\"points\": [{\"model\": [\"cnn\", null]}]}", "points[0].model", "neither text nor");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\"}, {\"modell\": \"cnn\"}]}", "points[1].modell", "'model'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"batch_per_device\": 0}]}", "points[0]", "batch");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 1000}]}", "points[0]", "nodes 1000");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": \"x\"}]}", "points[0]", "nodes");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"devices\": \"3+\"}]}", "points[0]", "'3+'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"devices\": \"3+0\"}]}", "points[0]", "'3+0'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"devices\": -1}]}", "points[0]", "'-1'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"rate\": \"fast\"}]}", "points[0]",
		"rate 'fast'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"rate\": \"1kbit\"}]}", "points[0]",
		"rate '1kbit'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"wire\": \"fp8\"}]}", "points[0]", "wire 'fp8'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"strategy\": \"ring\"}]}", "points[0]", "strategy 'ring'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"kind\": \"eval\"}]}", "points[0]", "kind 'eval'");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"kind\": \"train\"}]}", "points[0]", "needs data");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"on\": 1, \"nodes\": 2}]}", "points[0]", "\"on\"");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 40, \"devices\": 1}]}", "points[0]",
		"too many for a point");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\"}], \"quick\": {\"points\": [{\"batch_per_device\": 3}]}}",
		"quick.points[0]", "no model");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\"}], \"quick\": []}", "quick", "not an object");
	refuses("{\"format\": \"lockstep recipe\", \"version\": 2, \"title\": \"t\", \"table\": \"pie\"}", "table",
		"'pie'");
	refuses("{\"format\": \"lockstep recipe\", \"version\": 2, \"table\": \"epochs\"}", "title", "missing");
}

static void test_too_many_points(void **state)
{
	(void)state;
	char text[4096];
	size_t used = (size_t)snprintf(text, sizeof(text), HEAD "\"points\": [{\"model\": \"cnn\"");
	static const char *const lists[] = { "batch_per_device", "threads", "devices" };
	for (size_t k = 0; k < 3; k++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, ", \"%s\": [1", lists[k]);
		for (int i = 2; i <= 30; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, ", %d", i);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "]");
	}
	snprintf(text + used, sizeof(text) - used, "}]}");
	refuses(text, "points[0]", "27000 points");
}

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

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static void test_sets_of_nodes(void **state)
{
	(void)state;
	ls_sweep_list list;
	assert_int_equal(parse(&list,
			       HEAD
			       "\"points\": [{\"model\": \"cnn\", \"devices\": \"1+1\", \"on\": [[1, 6], \"2,9\"]}, "
			       "{\"model\": \"cnn\", \"on\": [3, 0]}]}",
			       0),
			 LS_OK);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.points[0].on, "1,6");
	assert_string_equal(list.points[1].on, "2,9");
	assert_string_equal(list.points[2].on, "3");
	assert_string_equal(list.points[3].on, "");
	assert_string_not_equal(list.points[0].key, list.points[1].key);
	assert_int_equal(ls_sweep_point_node(&list.points[0], 1), 6);
	assert_int_equal(ls_sweep_point_node(&list.points[3], 0), 1);
	assert_int_equal(ls_sweep_point_highest(&list.points[1]), 9);
	ls_sweep_list_release(&list);
#define ON(nodes) HEAD "\"points\": [{\"model\": \"cnn\", \"devices\": \"1+1\", \"on\": " nodes "}]}"
	refuses(ON("[[1, 1]]"), "points[0]", "on 1,1: node 1 is there twice");
	refuses(ON("[[1, 2, 3]]"), "points[0]", "\"on\" names 3 nodes (1,2,3), but the point has 2");
	refuses(ON("[[1, 0]]"), "points[0]", "on 0: expected 1 to 200");
	refuses(ON("[[1, \"2\"]]"), "points[0].on", "whole numbers");
	refuses(ON("[[]]"), "points[0].on", "empty");
	refuses(ON("\"1,,2\""), "points[0]", "on");
}

/* Servers among the devices: the last devices become servers. */
static void test_servers_inside(void **state)
{
	(void)state;
	ls_sweep_list list;
	assert_int_equal(parse(&list,
			       HEAD
			       "\"points\": [{\"model\": \"cnn\", \"strategy\": \"ps\", \"servers_count\": \"inside\", "
			       "\"servers\": [1, 2], \"devices\": [\"8\", \"2+2\", \"1+1+1\"]}]}",
			       0),
			 LS_OK);
	static const char *const shapes[] = { "7", "2+1", "1+1", "6", "2", "1" };
	assert_int_equal(list.count, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_string_equal(list.points[i].job.shape, shapes[i]);
		assert_int_equal(list.points[i].job.servers, i < 3 ? 1 : 2);
		assert_string_equal(list.points[i].job.servers_count, "inside");
		assert_int_equal(ls_sweep_point_normalise(&list.points[i]), LS_OK); /* again, it takes no more away */
		assert_string_equal(list.points[i].job.shape, shapes[i]);
	}
	ls_sweep_list_release(&list);
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"strategy\": \"ps\", \"servers_count\": \"inside\"}]}",
		"points[0]", "devices '1' with 1 server inside leave no worker");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"strategy\": \"ps\", \"servers_count\": \"in\"}]}",
		"points[0]", "servers_count 'in': expected beside or inside");
}

static void test_epoch(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list data, worker;
	o.recipe = "distml-resnet";
	assert_int_equal(ls_sweep_list_make(&data, &o), LS_OK);
	o.epoch = "worker";
	assert_int_equal(ls_sweep_list_make(&worker, &o), LS_OK);
	assert_int_equal(data.count, worker.count);
	for (size_t i = 0; i < data.count; i++) {
		const ls_point_job *d = &data.points[i].job, *w = &worker.points[i].job;
		assert_int_equal(ls_point_job_passes(d), 1);
		assert_int_equal(ls_point_job_passes(w), w->devices);
		if (!strcmp(d->kind, "train"))
			assert_string_not_equal(data.points[i].key, worker.points[i].key);
	}
	ls_sweep_list_release(&data);
	ls_sweep_list_release(&worker);
	o.epoch = "half";
	assert_int_equal(ls_sweep_list_make(&data, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "options.epoch is 'half'"));
	o.epoch = "data", o.recipe = NULL;
	assert_int_equal(ls_sweep_list_make(&data, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "name the recipe"));
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"epoch\": \"half\"}]}", "points[0]",
		"epoch 'half': expected data or worker");
}

/* Options that the model of a block does not have. */
static void test_arguments_fit_models(void **state)
{
	(void)state;
	refuses(HEAD
		"\"points\": [{\"model\": [\"transformer\", \"resnet18\"], \"arguments\": \"--lr 1 --layers=6\"}]}",
		"points[0].arguments has --layers", "model resnet18 does not have");
	refuses(HEAD "\"points\": [{\"model\": \"bert-base\", \"arguments\": \"--heads 6\"}]}",
		"points[0].arguments has --heads", "model bert-base does not have");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"arguments\": \"--seq-len 6\"}]}",
		"points[0].arguments has --seq-len", "model cnn does not have");
	ls_sweep_list list;
	assert_int_equal(parse(&list,
			       HEAD
			       "\"points\": [{\"model\": \"bert-tiny\", \"arguments\": \"--seq-len 6\"}, {\"model\": "
			       "\"transformer\", \"arguments\": \"--layers 2 --seq-len 9\"}]}",
			       0),
			 LS_OK);
	ls_sweep_list_release(&list);
}

/* ---- the original ------------------------------------------------------------------------------------------------ */

#define ORIGINAL(object) HEAD "\"original\": " object ", \"points\": [{\"model\": \"cnn\"}]}"

static void test_original_refused(void **state)
{
	(void)state;
	refuses(ORIGINAL("{\"clip-nrom\": 1}"), "mine.json: original.clip-nrom",
		"not the name of an option; did you mean 'clip-norm'?");
	refuses(ORIGINAL("{\"clip_norm\": 1}"), "original.clip_norm", "did you mean 'clip-norm'?");
	refuses(ORIGINAL("{\"launches\": 0}"), "original.launches", "is not a whole number above 0");
	refuses(ORIGINAL("{\"lr\": \"fast\"}"), "original.lr", "is not a number");
	refuses(ORIGINAL("{\"lr\": -1}"), "original.lr", "must be");
	refuses(ORIGINAL("{\"optimizer\": 3}"), "original.optimizer", "is not text");
	refuses(ORIGINAL("{\"optimizer\": \"\"}"), "original.optimizer", "is empty");
	refuses(ORIGINAL("{\"nesterov\": 1}"), "original.nesterov", "neither true nor false");
	refuses(ORIGINAL("{\"data\": [1]}"), "original.data", "neither text, a number, true nor false");
	refuses(ORIGINAL("3"), "original", "not an object");
	refuses(HEAD "\"points\": [{\"model\": \"cnn\", \"original\": {\"modell\": \"x\"}}]}",
		"points[0].original.modell", "did you mean 'model'?");
	refuses(HEAD
		"\"points\": [{\"model\": \"cnn\"}], \"quick\": {\"points\": [{\"model\": \"cnn\", \"original\": 1}]}}",
		"quick.points[0].original", "not an object");
}

static const char *ours_of(const ls_sweep_list *list, size_t i, const char *name)
{
	static char out[LS_RESULTS_NAME];
	ls_point point = { .state = LS_POINT_DONE };
	assert_int_equal(ls_original_settings(list, &list->points[i], &point), LS_OK);
	snprintf(out, sizeof(out), "not recorded");
	for (size_t k = 0; k < point.setting_count; k++)
		if (!strcmp(point.settings[k].name, name))
			snprintf(out, sizeof(out), "%s", point.settings[k].ours);
	ls_point_release(&point);
	return out;
}

/* Settings are resolved: fields, arguments, and defaults of the command, the optimizer and the model. */
static void test_original_settings(void **state)
{
	(void)state;
	static const char text[] =
		HEAD "\"original\": {\"optimizer\": \"adamw\", \"lr\": 0.1, \"momentum\": 0.9, \"clip-norm\": 1, "
		     "\"launches\": 7, \"repeat\": 1, \"data\": \"Wikipedia\", \"layers\": 8, \"warmup\": 20, "
		     "\"schedule\": \"constant\", \"samples\": \"all\", \"epoch\": \"worker\", "
		     "\"nesterov\": true, \"servers-count\": \"inside\", \"steps\": 100}, "
		     "\"points\": [{\"model\": \"transformer\", \"launches\": 3}, {\"model\": \"transformer\", "
		     "\"kind\": \"train\", \"data\": \"sst5\", \"samples\": 9, \"epochs\": 1, \"optimizer\": \"sgd\", "
		     "\"devices\": 2, "
		     "\"arguments\": \"--layers 2 --lr 7 --nesterov --lr=5\", \"original\": {\"launches\": 2}}]}";
	static const struct {
		const char *name, *bench, *train;
	} cases[] = { { "optimizer", "adam", "sgd" },
		      { "lr", "0.001", "5" },
		      { "momentum", "none", "0.9" },
		      { "clip-norm", "0", "0" },
		      { "launches", "3", "7" },
		      { "repeat", "7", "1" },
		      { "data", "synthetic", "sst5" },
		      { "layers", "6", "2" },
		      { "warmup", "20", "0" },
		      { "schedule", "constant", "wsd" },
		      { "samples", "all", "9" },
		      { "epoch", "worker", "data" },
		      { "nesterov", "off", "on" },
		      { "servers-count", "inside", "inside" },
		      { "seed", "not recorded", "not recorded" } };
	ls_sweep_list list;
	if (parse(&list, text, 0) != LS_OK)
		fail_msg("%s", ls_last_error());
	assert_int_equal(list.count, 2);
	for (size_t i = 0; i < LS_COUNT(cases); i++) {
		if (strcmp(ours_of(&list, 0, cases[i].name), cases[i].bench) != 0)
			fail_msg("bench: %s is %s, not %s", cases[i].name, ours_of(&list, 0, cases[i].name),
				 cases[i].bench);
		if (strcmp(ours_of(&list, 1, cases[i].name), cases[i].train) != 0)
			fail_msg("train: %s is %s, not %s", cases[i].name, ours_of(&list, 1, cases[i].name),
				 cases[i].train);
	}
	assert_int_equal(list.points[1].original.count, list.points[0].original.count);
	ls_sweep_list_release(&list);
}

/* Full forms have the settings of their originals, but for those that a bench stands for and a few that are named. */
static void test_full_is_like_the_original(void **state)
{
	(void)state;
	static const char *const names[] = { "distml-resnet", "distml-sst5",  "distml-strategies",
					     "oneflow-bert",  "rcc-bigmnist", "rcc-mnist" };
	for (size_t i = 0; i < LS_COUNT(names); i++) {
		ls_sweep_list list;
		assert_int_equal(ls_recipe_open(&list, names[i], LS_RECIPE_FULL), LS_OK);
		for (size_t k = 0; k < list.count; k++) {
			ls_difference different[LS_RESULTS_SETTINGS];
			ls_point point = { .state = LS_POINT_DONE, .job = list.points[k].job };
			assert_int_equal(ls_original_settings(&list, &list.points[k], &point), LS_OK);
			assert_true(point.setting_count > 2);
			size_t n = ls_point_differences(&point, different, LS_COUNT(different));
			for (size_t d = 0; d < n; d++) {
				const char *name = different[d].name;
				if (!strcmp(name, "data") || !strcmp(name, "clip-norm") || !strcmp(name, "layers") ||
				    !strcmp(name, "servers-count"))
					continue;
				fail_msg("%s: %s: %s is %s, of the original %s", names[i], list.points[k].key, name,
					 different[d].ours, different[d].original);
			}
			ls_point_release(&point);
		}
		ls_sweep_list_release(&list);
	}
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void test_lists_choose(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.recipe = "oneflow-bert", o.full = 1, o.batch = "96,64", o.devices = "8", o.repeat = 3, o.steps = 9;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 6); /* 8, 8+8 and 8+8+8+8 of each */
	assert_int_equal(list.repeat, 3);
	assert_int_equal(list.points[0].job.steps, 9);
	assert_string_equal(list.points[1].job.shape, "8+8");
	ls_sweep_list_release(&list);
	o.nodes = "3";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "(18 in all)"));
}

static void test_lists_make(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.model = "cnn", o.nodes = "1,2", o.wire = "fp32,bf16", o.arguments = "--micro-batch 8";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.points[2].job.wire, "bf16");
	assert_string_equal(list.points[2].job.arguments, "--micro-batch 8");
	assert_int_equal(list.points[0].job.batch, 128);
	ls_sweep_list_release(&list);
	o.batch = "8,,9";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "batch_per_device has a value that is empty"));
	o.batch = "8,ten";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	o.batch = "8", o.quick = 1, o.steps = 7;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.form, LS_RECIPE_QUICK);
	assert_int_equal(list.repeat, 3);
	assert_int_equal(list.points[0].job.warmup, 5);
	assert_int_equal(list.points[0].job.steps, 7);
	ls_sweep_list_release(&list);
}

/* Rates and speeds of emulated nodes are dropped for real hosts, and points that become equal are merged. */
static void test_hosts(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.recipe = "distml-strategies", o.hosts = "a,b,c";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 43);
	for (size_t i = 0; i < list.count; i++)
		assert_string_equal(list.points[i].job.rate, "");
	ls_sweep_list_release(&list);
	o.rate = "1gbit";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "options.rate"));
}

/* A given number replaces those of all blocks, and points that become equal are merged. */
static void test_same_after_choice(void **state)
{
	(void)state;
	char path[] = "/tmp/lockstep-recipe-XXXXXX";
	int fd = mkstemp(path);
	static const char text[] = HEAD "\"points\": [{\"model\": \"cnn\", \"steps\": 3}, "
					"{\"model\": \"cnn\", \"steps\": 4}]}";
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.recipe = path;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 2);
	ls_sweep_list_release(&list);
	o.steps = 5;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 1);
	ls_sweep_list_release(&list);
	unlink(path);
}

/* A node that is emulated at reduced speed is recorded so; the published table has one among its single nodes. */
static void test_speeds(void **state)
{
	static const double speeds[] = { 0, 0.5, 0, 0, 0.5 }; /* on node 1 and 2; one device and two; both nodes */
	(void)state;
	ls_sweep_list list;
	assert_int_equal(ls_recipe_open(&list, "rcc-bigmnist", 1), LS_OK);
	assert_true(list.count >= 5);
	for (size_t i = 0; i < 5; i++)
		if (!(list.points[i].job.speed == speeds[i]))
			fail_msg("%s on node %s: speed %g, not %g", list.points[i].key, list.points[i].on,
				 list.points[i].job.speed, speeds[i]);
	ls_point slow = { .job = list.points[1].job }, whole = { .job = list.points[0].job };
	ls_point both = { .job = list.points[4].job }, replay = { .job = list.points[0].job };
	replay.job.replay = 1;
	assert_true(ls_point_comparable(&slow, &slow) && ls_point_comparable(&whole, &both));
	assert_false(ls_point_comparable(&slow, &whole) || ls_point_comparable(&slow, &both));
	assert_false(ls_point_comparable(&whole, &replay) || ls_point_comparable(&replay, &whole));
	ls_sweep_list_release(&list);
}

/* Points with simulated compute of one kind share one baseline, whatever their nodes, with its own key. */
static void test_baseline(void **state)
{
	(void)state;
	ls_sweep_list list;
	ls_sweep_point first, second, alone;
	assert_int_equal(parse(&list,
			       HEAD "\"points\": [{\"model\": \"cnn\", \"nodes\": 2, \"devices\": 4, \"rate\": "
				    "[\"1gbit\", \"10gbit\"], \"strategy\": \"ps\", \"speeds\": \"1,0.5\"}, "
				    "{\"model\": \"cnn\"}]}",
			       0),
			 LS_OK);
	assert_int_equal(list.count, 3);
	assert_int_equal(ls_sweep_point_baseline(&list.points[0], &first), LS_OK);
	assert_int_equal(ls_sweep_point_baseline(&list.points[1], &second), LS_OK);
	alone = list.points[2];
	assert_string_equal(first.key, second.key);
	assert_string_not_equal(first.key, alone.key);
	assert_int_equal(first.job.nodes, 1);
	assert_int_equal(first.job.devices, 1);
	assert_int_equal(first.job.servers, 0);
	assert_string_equal(first.job.strategy, "local");
	assert_true(first.job.speed == 0);
	ls_sweep_list_release(&list);
}

/* Each part of a job is part of its key. */
static void test_keys(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list one, other;
	o.model = "cnn", o.nodes = "2";
	assert_int_equal(ls_sweep_list_make(&one, &o), LS_OK);
	assert_int_equal(ls_sweep_list_make(&other, &o), LS_OK);
	assert_string_equal(one.points[0].key, other.points[0].key);
	ls_sweep_list_release(&other);
	for (int k = 0; k < 7; k++) {
		ls_sweep_options changed = o;
		const char **texts[] = { &changed.optimizer, &changed.arguments, &changed.wire, &changed.data,
					 &changed.threads };
		static const char *const values[] = { "sgd", "--micro-batch 8", "bf16", "sst5", "2" };
		if (k < 5)
			*texts[k] = values[k];
		changed.steps = k == 5 ? 7 : changed.steps;
		changed.warmup = k == 6 ? 0 : changed.warmup;
		assert_int_equal(ls_sweep_list_make(&other, &changed), LS_OK);
		assert_string_not_equal(one.points[0].key, other.points[0].key);
		ls_sweep_list_release(&other);
	}
	ls_sweep_list_release(&one);
}

TEST_MAIN(test_lists_multiply, test_same_points_are_one, test_every_strategy_is_a_point, test_quick_overrides,
	  test_forms, test_arguments, test_malformed, test_too_many_points, test_built_in, test_published_points,
	  test_published_nodes, test_sets_of_nodes, test_servers_inside, test_epoch, test_arguments_fit_models,
	  test_original_refused, test_original_settings, test_full_is_like_the_original, test_lists_choose,
	  test_lists_make, test_keys, test_speeds, test_baseline, test_hosts, test_same_after_choice)
