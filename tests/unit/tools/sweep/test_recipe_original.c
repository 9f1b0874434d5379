/*
 * What a recipe says of the published run, and in what its points differ from it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tools/results/differences.h"
#include "tools/sweep/original.h"
#include "unit/test_main.h"
#include "unit/tools/sweep/recipe_text.h"

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

TEST_MAIN(test_original_refused, test_original_settings, test_full_is_like_the_original)
