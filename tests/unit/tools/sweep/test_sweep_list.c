/*
 * Points from the options of a sweep: what they choose from a recipe, what they make without
 * one, and the keys of points.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/sweep/recipe.h"
#include "unit/test_main.h"
#include "unit/tools/sweep/recipe_text.h"

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

/* 8 devices with a server among them are 7 workers, and a row of 8. */
static void test_lists_choose_servers_inside(void **state)
{
	(void)state;
	ls_sweep_options o = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_list list;
	o.recipe = "distml-strategies", o.quick = 1, o.model = "resnet18", o.nodes = "1", o.strategy = "ps";
	o.devices = "8";
	assert_ok(ls_sweep_list_make(&list, &o));
	assert_int_equal(list.count, 2);
	assert_string_equal(list.points[0].job.shape, "8"); /* one node has no strategy */
	assert_string_equal(list.points[1].job.shape, "7");
	assert_int_equal(list.points[1].job.servers, 1);
	ls_sweep_list_release(&list);
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

TEST_MAIN(test_lists_choose, test_lists_choose_servers_inside, test_lists_make, test_hosts, test_same_after_choice,
	  test_speeds, test_baseline, test_keys)
