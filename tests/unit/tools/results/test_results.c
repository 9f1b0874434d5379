/*
 * Results: written values read back, medians are those of the repeats, and errors name file, field and reason.
 */
#include "tools/results/results.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ls_point_repeat repeats[] = { { 30, 3, 9, 0 }, { 10, 5, 7, 2 }, { 20, 4, 8, 2 } };
static ls_point_launch launches[] = {
	{ .wall_s = 9, .load = 0.1, .steal = 0.01, .mhz = 2600 },
	{ .wall_s = 1, .busy = 1, .reason = "killed by signal 9" },
	{ .wall_s = 7, .again = 1 },
};
static ls_point_node nodes[] = { { "a", 3, 1, 2, 3, 4, 5 }, { "b", 2, 1, 2, 3, 4, 5 } };
static ls_point_rate rates[] = { { 200, 100.71, NAN }, { 400, 110, 0.5 } };
static ls_point_epoch epochs[] = { { 0, 543.88, 13.77, 0.8626, NAN } };
static ls_point_setting settings[] = { { "optimizer", "adamw", "adam" }, { "clip-norm", "1", "" } };
static ls_point points[] = {
	{ .key = "train/resnet18/3+2",
	  .job = { .kind = "train",
		   .model = "resnet18",
		   .shape = "3+2",
		   .nodes = 2,
		   .devices = 5,
		   .batch = 128,
		   .epoch = "worker",
		   .servers_count = "inside" },
	  .state = LS_POINT_DONE,
	  .accuracy = 0.8626,
	  .launch_count = 3,
	  .launches = launches,
	  .repeat_count = 3,
	  .repeats = repeats,
	  .node_count = 2,
	  .nodes = nodes,
	  .rate_count = 2,
	  .rates = rates,
	  .epoch_count = 1,
	  .epochs = epochs,
	  .setting_count = 2,
	  .settings = settings },
	{ .key = "bench/resnet18/1",
	  .job = { .kind = "bench", .model = "resnet18", .shape = "1", .nodes = 1, .devices = 1 },
	  .state = LS_POINT_SKIPPED,
	  .reason = "two cores are too few" },
};
static const ls_results whole = {
	.sweep = "distml-resnet", .started = "2026-01-01T00:00:00Z", .quick = 1, .point_count = 2, .points = points
};

/* malloc'd */
static char *written(void)
{
	char path[] = "/tmp/lockstep-results-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ls_results_write(&whole, path), LS_OK);
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 16);
	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	unlink(path);
	return text;
}

static void test_round_trip(void **state)
{
	char *text = written();
	ls_results back;

	(void)state;
	assert_int_equal(ls_results_parse(&back, text, strlen(text), "r.json"), LS_OK);
	assert_string_equal(back.sweep, "distml-resnet");
	assert_int_equal(back.quick, 1);
	assert_string_equal(back.form, "quick"); /* as in files that do not have it */
	assert_int_equal(back.point_count, 2);
	const ls_point *p = &back.points[0];
	assert_string_equal(p->job.shape, "3+2");
	assert_string_equal(p->job.epoch, "worker");
	assert_string_equal(p->job.servers_count, "inside");
	assert_int_equal(p->setting_count, 2);
	assert_string_equal(p->settings[0].original, "adamw");
	assert_string_equal(p->settings[0].ours, "adam");
	assert_string_equal(p->settings[1].ours, "");
	assert_true(p->samples_per_s == 22.5 && p->samples_per_s_min == 10 && p->samples_per_s_max == 30);
	assert_true(p->step_ms == 3.75 && p->wall_s == 8.25);
	assert_int_equal(p->launch_count, 3);
	assert_true(p->launches[0].steal == 0.01 && p->launches[1].busy && p->launches[2].again);
	assert_string_equal(p->launches[1].reason, "killed by signal 9");
	assert_int_equal(p->repeats[1].launch, 2);
	assert_int_equal(p->node_count, 2);
	assert_string_equal(p->nodes[1].host, "b");
	assert_true(isnan(p->rates[0].loss) && p->rates[1].loss == 0.5);
	assert_true(p->epochs[0].test_seconds == 13.77 && isnan(p->epochs[0].test_loss));
	assert_int_equal(back.points[1].state, LS_POINT_SKIPPED);
	assert_string_equal(back.points[1].reason, "two cores are too few");
	ls_results_release(&back);
	free(text);
}

static void expect_refusal(const char *text, const char *from, const char *to, const char *part)
{
	const char *at = strstr(text, from);
	char *changed = calloc(1, strlen(text) + strlen(to) + 1);
	ls_results out;

	assert_non_null(at);
	snprintf(changed, strlen(text) + strlen(to) + 1, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	assert_int_equal(ls_results_parse(&out, changed, strlen(changed), "r.json"), LS_EFORMAT);
	if (strncmp(ls_last_error(), "r.json:", 7) != 0 || !strstr(ls_last_error(), part))
		fail_msg("'%s' instead of '%s' says: %s", to, from, ls_last_error());
	free(changed);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *from, *to, *part;
	} cases[] = {
		{ "lockstep results", "weights", "not a lockstep results" },
		{ "\"version\": 3", "\"version\": 9", "version is 9" },
		{ "\"samples_per_s\": 30.0", "\"samples_per_s\": 0",
		  "points[0].repeats[0].samples_per_s is not above 0" },
		{ "\"launch\": 2", "\"launch\": 3", "points[0].repeats[1].launch is 3: there is no such launch" },
		{ "\"launch\": 2", "\"launch\": 1",
		  "points[0].repeats[1].launch is 1: there is no such launch, or it" },
		{ "\"host\": \"b\"", "\"host\": 7", "points[0].nodes[1].host is a number, not text" },
		{ "\"step\": 200", "\"step\": -1", "points[0].rates[0].step is -1" },
		{ "\"state\": \"done\"", "\"state\": \"perfect\"", "points[0].state" },
		{ "two cores are too few", "", "points[1].reason is missing: the point is skipped" },
		{ "bench/resnet18/1", "train/resnet18/3+2", "two points have the key" },
		{ "\"nodes\": 1", "\"nodes\": 0", "points[1].job.nodes is 0" },
		{ "\"form\": \"\"", "\"form\": \"long\"", "form is 'long', not quick, default or full" },
		{ "\"original\": \"adamw\"", "\"original\": \"\"", "points[0].settings[0].original is empty" },
		{ "\"cores\": 0", "\"cores\": 1.5", "machine.cores" },
		{ "{\n", "{{", "r.json:1: not acceptable JSON" },
	};
	char *text = written();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(text, cases[i].from, cases[i].to, cases[i].part);
	free(text);
}

TEST_MAIN(test_round_trip, test_malformed)
