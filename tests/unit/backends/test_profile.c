/*
 * Profiles: what is written reads back, what is malformed is refused by file, field and reason; a profiler that is
 * given spans; a replay that keeps time, asks and hands over in order.
 */
#include <stddef.h>
#include <stdint.h>

#include <lockstep/models.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/devices.h"
#include "backends/profiler.h"
#include "backends/replay/replay.h"
#include "base/clock.h"
#include "unit/assert_status.h"
#include "unit/backends/profile_sum.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

/* Two layers with parameters around one without; 6 ms a round, 12 in all. */
static ls_profile small_profile(void)
{
	static const ls_profile_layer layers[3] = {
		{ .name = "a",
		  .forward_s = 0.002,
		  .backward_s = 0.004,
		  .ranges = 2,
		  .range = { { 0, 30 }, { 32, 48 } } },
		{ .name = "relu", .forward_s = 0, .backward_s = 0 },
		{ .name = "b", .forward_s = 0.002, .backward_s = 0.003, .ranges = 1, .range = { { 48, 64 } } },
	};
	ls_profile p = { .model = "m",
			 .optimizer = "sgd",
			 .isa = "avx2",
			 .kernels = "xsmm",
			 .lockstep = "0.1.0",
			 .channels = 1,
			 .height = 2,
			 .width = 2,
			 .classes = 2,
			 .batch = 4,
			 .tiles = 2,
			 .threads = 1,
			 .steps = 3,
			 .devices = 1,
			 .microbatches = 1,
			 .step_s = 0.0123456789,
			 .loss_s = 0.001,
			 .update_s = 2e-5,
			 .reachable = 64,
			 .extra = 4,
			 .layers = 3 };
	p.layer = calloc(3, sizeof(*p.layer));
	assert_non_null(p.layer);
	memcpy(p.layer, layers, sizeof(layers));
	return p;
}

static void test_round_trip(void **state)
{
	ls_profile p = small_profile(), back;
	char path[1100];
	uint64_t one, other;

	snprintf(path, sizeof(path), "%s/p.json", (char *)*state);
	assert_ok(ls_profile_write(&p, path));
	assert_ok(ls_profile_read(&back, path));
	assert_string_equal(back.model, "m");
	assert_int_equal(back.tiles, 2);
	assert_true(fabs(back.step_s - p.step_s) < 1e-9);
	assert_int_equal(back.layers, 3);
	assert_int_equal(back.layer[0].ranges, 2);
	assert_int_equal(back.layer[0].range[0].end, 30);
	assert_int_equal(back.layer[1].ranges, 0);
	assert_true(back.layer[2].backward_s == 0.003);
	assert_ok(ls_profile_hash(&p, &one));
	assert_ok(ls_profile_hash(&back, &other));
	assert_int_equal(one, other);
	back.layer[2].backward_s = 0.004;
	assert_ok(ls_profile_hash(&back, &other));
	assert_int_not_equal(one, other);
	ls_profile_release(&back);
	ls_profile_release(&p);
	unlink(path);
}

/* `from` in a whole profile replaced by `to` is refused with a message that has `part`. */
static void expect_refusal(const char *whole, const char *from, const char *to, const char *part)
{
	const char *at = strstr(whole, from);
	char text[4096];
	ls_profile out;

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
	assert_int_equal(ls_profile_parse(&out, text, strlen(text), "here.json"), LS_EFORMAT);
	if (strncmp(ls_last_error(), "here.json:", 10) != 0 || !strstr(ls_last_error(), part))
		fail_msg("'%s' instead of '%s' says: %s", to, from, ls_last_error());
}

static void test_malformed(void **state)
{
	static const char whole[] =
		"{\"format\":\"lockstep "
		"profile\",\"version\":2,\"model\":\"m\",\"channels\":1,\"height\":2,\"width\":2,"
		"\"classes\":2,\"tokens\":0,\"masked\":0,\"vocabulary\":0,\"micro_batch\":4,\"tiles\":2,\"optimizer\":"
		"\"sgd\",\"threads\":1,\"isa\":\"avx2\","
		"\"kernels\":\"xsmm\",\"lockstep\":\"0.1\",\"steps\":3,\"step_s\":0.1,\"loss_s\":0,\"update_s\":0.1,"
		"\"gflop_per_sample\":1,\"reachable_floats\":64,\"statistics_floats\":4,\"layers\":[{\"name\":\"a\","
		"\"forward_s\":"
		"1,"
		"\"backward_s\":2,\"parameters\":[[0,30],[32,48]]},{\"name\":\"b\",\"forward_s\":1,\"backward_s\":2,"
		"\"parameters\":[[48,64]]}]}";
	static const char *const rows[][3] = {
		{ "{", "", "JSON" },
		{ "lockstep profile", "weights", "not a lockstep profile" },
		{ "\"version\":2", "\"version\":3", "version is 3; this program reads 1 to 2" },
		{ "\"model\":\"m\"", "\"model\":7", "model is a number, not text" },
		{ "\"isa\":\"avx2\",", "", "isa is missing" },
		{ "\"micro_batch\":4", "\"micro_batch\":4.5",
		  "micro_batch is a number with a fraction, not a whole number" },
		{ "\"micro_batch\":4", "\"micro_batch\":0", "micro_batch is 0" },
		{ "\"tiles\":2", "\"tiles\":5", "tiles is 5, more than the micro_batch of 4" },
		{ "\"step_s\":0.1", "\"step_s\":-0.1", "step_s is -0.1" },
		{ "\"step_s\":0.1", "\"step_s\":\"fast\"", "step_s is text, not a number" },
		{ "\"loss_s\":0", "\"los_s\":0,\"loss_s\":0",
		  "los_s is not a field of this file; did you mean loss_s?" },
		{ "\"forward_s\":1", "\"forward\":1,\"forward_s\":1", "layers[0].forward is not a field" },
		{ "\"layers\":[", "\"layers\":[3,", "layers[0] is not an object" },
		{ "\"forward_s\":1,", "\"forward_s\":1e9,", "layers[0].forward_s is 1e+09" },
		{ "[0,30]", "[0]", "layers[0].parameters[0] is not a pair" },
		{ "[0,30]", "[30,0]", "layers[0].parameters[0] is [30, 0]" },
		{ "[48,64]", "[48,65]", "layers[1].parameters[0] is [48, 65]" },
		{ "[48,64]", "[47,64]", "layers[1].parameters[0] is [47, 64]" },
		{ "[[48,64]]", "[]", "floats 48 to 64 are parameters of no layer" },
		{ "[0,30]", "[0,16]", "floats 16 to 32 are parameters of no layer" },
		{ "[48,64]", "[32,64]", "floats 32 and on are parameters of two layers" },
		{ "[0,30],[32,48]", "[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1]", "at most 8 pairs" },
	};
	ls_profile out;

	(void)state;
	assert_ok(ls_profile_parse(&out, whole, strlen(whole), "here.json"));
	ls_profile_release(&out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_refusal(whole, rows[i][0], rows[i][1], rows[i][2]);
	assert_int_not_equal(ls_profile_read(&out, "/nowhere/p.json"), LS_OK);
	assert_non_null(strstr(ls_last_error(), "/nowhere/p.json"));
}

/* What one micro-batch of a replay said. */
typedef struct diary {
	char text[512];
	double start;
	double wait_at_b; /* seconds that need() of layer b takes */
} diary;

static void say(diary *d, char what, size_t begin, size_t end)
{
	size_t used = strlen(d->text);
	snprintf(d->text + used, sizeof(d->text) - used, "%c%zu-%zu ", what, begin, end);
}

static void need(void *context, size_t begin, size_t end, ls_member member)
{
	diary *d = context;
	if (member.rank != 0)
		return;
	say(d, 'n', begin, end);
	if (begin == 48 && d->wait_at_b > 0)
		usleep((useconds_t)(d->wait_at_b * 1e6));
}

static void ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	if (member.rank != 0)
		return;
	say(context, 'r', begin, end);
	for (size_t i = 0; i < end - begin; i++)
		assert_true(grads[i] == 0.5f);
}

enum { PATIENCE_S = 30 };

/* Of some micro-batches the fastest takes so long: others may be busy on this machine, but not all the time. */
static void expect_seconds(ls_executor *executor, ls_exec_microbatch microbatch, diary *d, double least, double most)
{
	double fastest = INFINITY, end = ls_clock_seconds() + PATIENCE_S;
	while (fastest > most && ls_clock_seconds() < end) {
		d->text[0] = '\0';
		double start = ls_clock_seconds();
		executor->backend->train(executor, &microbatch);
		double seconds = ls_clock_seconds() - start;
		fastest = seconds < fastest ? seconds : fastest;
	}
	if (fastest < least || fastest > most)
		fail_msg("%g s, not %g to %g", fastest, least, most);
}

static void test_replay_keeps_time(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads += 2) {
		ls_profile p = small_profile();
		ls_replay_options options = { .profile = &p, .speed = 1, .value = 0.5f };
		float grads[64 + 16];
		diary d = { .wait_at_b = 0 };
		ls_exec_microbatch microbatch = { .count = 4,
						  .grads = grads,
						  .need = need,
						  .need_context = &d,
						  .ready = ready,
						  .ready_context = &d };
		ls_devices *devices = NULL;
		ls_executor *executor = NULL;
		ls_devices_options how = {
			.count = 1, .threads = threads, .pin = LS_PIN_OFF, .backend_options = &options
		};
		ls_load_options load = { .sizes = { 4 } };

		assert_ok(ls_devices_open(&devices, &ls_backend_replay, &how));
		assert_ok(ls_devices_load(devices, 0, NULL, &load, &executor));
		expect_seconds(executor, microbatch, &d, 0.0119, 0.018);
		assert_string_equal(d.text, "n0-30 n32-48 n48-64 n0-30 n32-48 n48-64 r48-64 r0-30 r32-48 ");
		d.wait_at_b = 0.005; /* in both rounds: waiting comes on top */
		expect_seconds(executor, microbatch, &d, 0.0218, 0.03);
		d.wait_at_b = 0;
		p.other_s = 0.01; /* and so does what is in no layer */
		expect_seconds(executor, microbatch, &d, 0.0218, 0.03);
		p.other_s = 0;
		ls_executor_free(executor);
		options.speed = 0.25;
		assert_ok(ls_devices_load(devices, 0, NULL, &load, &executor));
		expect_seconds(executor, microbatch, &d, 0.0479, 0.06);
		ls_executor_free(executor);
		load.sizes[0] = 5;
		assert_int_equal(ls_devices_load(devices, 0, NULL, &load, &executor), LS_EINVALID);
		ls_devices_close(devices);
		ls_profile_release(&p);
	}
}

/* An older file has no "other": it is the recorded step less its parts. */
static void test_older_profile(void **state)
{
	ls_profile p = small_profile(), back;
	char path[1100], text[4096];

	snprintf(path, sizeof(path), "%s/old.json", (char *)*state);
	p.step_s = 0.02, p.other_s = 0.0042;
	assert_ok(ls_profile_write(&p, path));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	char *at = strstr(text, "\"other_s\"");
	assert_non_null(at);
	memset(at, ' ', (size_t)(strchr(at, ',') - at) + 1);
	assert_ok(ls_profile_parse(&back, text, strlen(text), "old"));
	assert_true(fabs(back.other_s - (0.02 - 0.012 - 2e-5)) < 1e-9);
	assert_int_equal(back.microbatches, 1);
	ls_profile_release(&back);
	ls_profile_release(&p);
	unlink(path);
}

static void tell(ls_profiler *r, int is_backward, double *now, double seconds)
{
	ls_profiler_span(r, is_backward, *now, *now + seconds);
	*now += seconds;
}

/* A step of two micro-batches in two tiles each, in which one layer is disturbed. */
static void tell_step(ls_profiler *r, double *now, size_t disturbed, double by)
{
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < r->layers; i++)
			tell(r, 0, now, (double)(i + 1) + (i == disturbed ? by : 0));
		*now += 0.5;
		for (size_t i = r->layers; i-- > 0;)
			tell(r, 1, now, 100.0 + (double)i);
	}
}

/* Of nine steps the first does not count, two are far too slow, and of the others each is disturbed elsewhere: parts
 * are those of the same steps, and add up to them. */
static void test_recorder(void **state)
{
	ls_graph *graph = NULL;
	ls_profiler r;
	ls_profile p = { .devices = 1 };
	double now = 100, covered = 0;

	(void)state;
	assert_ok(ls_model_build(&graph, &(ls_model_options){ .size = sizeof(ls_model_options), .name = "mlp" }));
	assert_ok(ls_profiler_init(&r, graph, 8));
	size_t layers = (size_t)graph->node_count;
	for (size_t step = 0; step < 9; step++) {
		double start = now;
		tell_step(&r, &now, step % layers, step == 3 || step == 6 ? 1e6 : 200);
		now += 40 + 6 + 2;
		ls_profiler_end_step(
			&r,
			&(ls_profiler_step){
				.microbatches = 2, .seconds = now - start, .update_s = 6, .exchange_s = 2 },
			step > 0);
	}
	assert_ok(ls_profiler_take(&r, &p));
	assert_int_equal(p.layers, layers);
	assert_int_equal(p.tiles, 2);
	assert_int_equal(p.microbatches, 2);
	assert_int_equal(p.steps, 8);
	assert_true(p.step_s < 1e5);
	assert_true(fabs(sum_of(&p) - p.step_s) < 1e-9 * p.step_s);
	assert_true(fabs(p.loss_s - 2 * 0.5) < 1e-9);
	assert_true(fabs(p.other_s - 20) < 1e-6 && fabs(p.update_s - 6) < 1e-9 && fabs(p.exchange_s - 2) < 1e-9);
	for (size_t i = 0; i < layers; i++) {
		assert_true(p.layer[i].forward_s > 2 * (double)(i + 1) - 1e-9);
		assert_true(fabs(p.layer[i].backward_s - 2 * (100.0 + (double)i)) < 1e-9);
		for (int k = 0; k < p.layer[i].ranges; k++)
			covered += (double)((p.layer[i].range[k].end - p.layer[i].range[k].begin + 15) / 16 * 16);
	}
	assert_true(covered == (double)graph->params.reachable);
	ls_profile_release(&p);
	ls_profiler_release(&r);
	ls_graph_free(graph);
}

TEST_MAIN_GROUP(temp_dir_make, temp_dir_remove, test_round_trip, test_malformed, test_older_profile,
		test_replay_keeps_time, test_recorder)
