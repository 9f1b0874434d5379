/*
 * Reading recipes: lists are multiplied out, equal points are merged, and errors name file, field and reason.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/train.h>

#include "base/array.h"
#include "unit/test_main.h"
#include "unit/tools/sweep/recipe_text.h"

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

TEST_MAIN(test_lists_multiply, test_same_points_are_one, test_every_strategy_is_a_point, test_quick_overrides,
	  test_forms, test_arguments, test_malformed, test_too_many_points, test_sets_of_nodes, test_servers_inside,
	  test_epoch, test_arguments_fit_models)
