/*
 * Recipes: lists are multiplied out, equal points are merged, and errors name file, field and reason. All recipes that
 * are built in can be read, in both forms.
 */
#include "tools/sweep/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <lockstep/train.h>

#include "base/array.h"

#define HEAD "{\"format\": \"lockstep recipe\", \"version\": 2, \"title\": \"t\", \"table\": \"throughput\", "

static ls_status parse(ls_sweep_list *list, const char *text, int quick)
{
	return ls_recipe_parse(list, text, strlen(text), quick, "mine", "mine.json");
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
	assert_int_equal(list.quick, 1);
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
	assert_non_null(strstr(ls_last_error(), "no short form"));
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
		for (int quick = 0; quick < 2; quick++) {
			ls_sweep_list list;
			if (ls_recipe_open(&list, names[i], quick) != LS_OK)
				fail_msg("%s", ls_last_error());
			assert_true(list.count > 0);
			assert_int_equal(list.quick, quick);
			assert_string_equal(list.name, names[i]);
			ls_sweep_list_release(&list);
		}
	assert_int_equal(ls_recipes_built_in_count, sizeof(names) / sizeof(names[0]));
	ls_sweep_list list;
	assert_int_equal(ls_recipe_open(&list, "oneflow-bart", 0), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "oneflow-bert"));
}

/* The published table has 15 rows of its own, and 4 x 8 of batch 48 among "all values". */
static void test_published_points(void **state)
{
	(void)state;
	ls_sweep_list list;
	size_t big = 0;
	assert_int_equal(ls_recipe_open(&list, "oneflow-bert", 0), LS_OK);
	for (size_t i = 0; i < list.count; i++) {
		assert_string_equal(list.points[i].job.model, "bert-base");
		big += list.points[i].job.nodes == 4 && list.points[i].job.devices == 32;
	}
	assert_int_equal(list.count, 17);
	assert_int_equal(big, 4);
	assert_int_equal(list.repeat, 7);
	ls_sweep_list_release(&list);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void test_lists_choose(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.recipe = "oneflow-bert", o.batch = "96,64", o.devices = "8", o.repeat = 3, o.steps = 9;
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_OK);
	assert_int_equal(list.count, 6); /* 8, 8+8 and 8+8+8+8 of each */
	assert_int_equal(list.repeat, 3);
	assert_int_equal(list.points[0].job.steps, 9);
	assert_string_equal(list.points[1].job.shape, "8+8");
	ls_sweep_list_release(&list);
	o.nodes = "3";
	assert_int_equal(ls_sweep_list_make(&list, &o), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "(17 in all)"));
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
	assert_int_equal(list.quick, 1);
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
	assert_int_equal(list.count, 36);
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
			fail_msg("%s on node %d: speed %g, not %g", list.points[i].key, (int)list.points[i].on,
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_multiply),
		cmocka_unit_test(test_same_points_are_one),
		cmocka_unit_test(test_every_strategy_is_a_point),
		cmocka_unit_test(test_quick_overrides),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_too_many_points),
		cmocka_unit_test(test_built_in),
		cmocka_unit_test(test_published_points),
		cmocka_unit_test(test_lists_choose),
		cmocka_unit_test(test_lists_make),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_speeds),
		cmocka_unit_test(test_baseline),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_same_after_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
