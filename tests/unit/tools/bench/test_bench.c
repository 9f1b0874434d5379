/*
 * The bench: profiles that it records add up, a replay's gradients are really exchanged, nodes measure together and
 * must agree on what.
 */
#include <stddef.h>
#include <stdint.h>

#include <lockstep/models.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/replay/replay.h"
#include "tools/bench/node.h"
#include "trainer/trainer.h"
#include "unit/assert_status.h"
#include "unit/backends/profile_sum.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"
#include "unit/trainer/gang.h"

static void test_bench_without_a_shape(void **state)
{
	(void)state;
	ls_bench_options o = LS_BENCH_OPTIONS_INIT;
	ls_bench_result result;
	o.job.model = "mlp", o.job.batch_per_device = 8, o.warmup = 0, o.steps = o.repeat = 1;
	o.channels = o.height = o.width = o.classes = 0; /* the model's own */
	assert_int_equal(ls_bench(&o, &result), LS_OK);
	ls_bench_result_release(&result);
	o.steps = o.repeat = (int64_t)1 << 40;
	assert_int_equal(ls_bench(&o, &result), LS_EINVALID);
	o.steps = o.repeat = 1, o.job.threads = 1025;
	assert_int_equal(ls_bench(&o, &result), LS_EINVALID);
}

/* A real step, whatever else the machine does: with one micro-batch and several, one device and two, an optimizer that
 * needs norms, and two threads. */
static void test_adds_up(void **state)
{
	static const struct {
		int64_t devices, threads, microbatches;
		const char *optimizer;
	} layouts[] = {
		{ 1, 1, 1, "adam" }, { 1, 2, 1, "adam" }, { 1, 1, 4, "adam" }, { 2, 1, 4, "sgd" }, { 1, 2, 2, "lamb" }
	};
	char path[1100];

	snprintf(path, sizeof(path), "%s/sum.json", (char *)*state);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		ls_bench_options o = LS_BENCH_OPTIONS_INIT;
		ls_bench_result result;
		ls_profile p;

		o.job.model = "cnn", o.job.micro_batch = 8, o.job.batch = 8 * layouts[i].microbatches;
		o.job.devices = layouts[i].devices, o.job.threads = layouts[i].threads;
		o.job.optimizer = layouts[i].optimizer, o.job.pin = "off";
		o.warmup = 1, o.steps = 12, o.repeat = 1, o.profile_out = path;
		assert_ok(ls_bench(&o, &result));
		ls_bench_result_release(&result);
		assert_ok(ls_profile_read(&p, path));
		assert_int_equal(p.devices, layouts[i].devices);
		assert_int_equal(p.microbatches * p.devices, layouts[i].microbatches);
		if (!(fabs(sum_of(&p) / p.step_s - 1) < 0.02))
			fail_msg("layout %zu: the parts are %g s, the step %g s", i, sum_of(&p), p.step_s);
		assert_true(p.other_s < p.step_s);
		ls_profile_release(&p);
	}
	unlink(path);
}

static void count_repeats(void *context, int64_t done, int64_t repeats)
{
	int64_t *calls = context;
	assert_int_equal(done, *calls);
	assert_int_equal(repeats, 3);
	++*calls;
}

/* The text that a program gets is that of the file, with how far the repeats differ. */
static void test_text(void **state)
{
	ls_bench_options o = LS_BENCH_OPTIONS_INIT;
	ls_bench_result result;
	ls_profile file, text;
	char path[1100];
	int64_t calls = 0;
	double mean = 0, squares = 0;

	snprintf(path, sizeof(path), "%s/text.json", (char *)*state);
	o.job.model = "mlp", o.job.batch_per_device = 8, o.job.pin = "off";
	o.warmup = 1, o.steps = 3, o.repeat = 3, o.profile_out = path, o.profile_text = 1;
	o.progress = count_repeats, o.progress_context = &calls;
	assert_ok(ls_bench(&o, &result));
	assert_int_equal(calls, 4);
	assert_ok(ls_profile_read(&file, path));
	assert_ok(ls_profile_parse(&text, result.profile_text, strlen(result.profile_text), "text"));
	for (int i = 0; i < 3; i++)
		mean += 1 / result.repeats[i].samples_per_s / 3;
	for (int i = 0; i < 3; i++)
		squares += pow(1 / result.repeats[i].samples_per_s / mean - 1, 2);
	assert_true(text.repeats == 3 && file.repeats == 3);
	assert_true(fabs(text.step_spread - sqrt(squares / 2)) < 1e-6);
	assert_true(fabs(text.step_spread - file.step_spread) < 1e-12 && fabs(text.step_s - file.step_s) < 1e-12);
	ls_profile_release(&file);
	ls_profile_release(&text);
	ls_bench_result_release(&result);
	assert_null(result.profile_text);
	unlink(path);
}

/* A profile as the bench writes one, of a model small enough for any machine; its layers take no time. */
static void record(const char *path, ls_profile *out)
{
	ls_bench_options o = LS_BENCH_OPTIONS_INIT;
	ls_bench_result result;

	o.job.model = "mlp", o.job.batch_per_device = 16, o.job.optimizer = "sgd", o.job.pin = "off";
	o.warmup = 1, o.steps = 4, o.repeat = 1, o.profile_out = path;
	assert_ok(ls_bench(&o, &result));
	ls_bench_result_release(&result);
	assert_ok(ls_profile_read(out, path));
}

static ls_status same_microbatch(void *context, int device, const ls_microbatch **microbatch)
{
	(void)device;
	*microbatch = context;
	return LS_OK;
}

/* Every parameter moves by lr * micro-batches * gradient / samples per step: exchange and update are the real ones. */
static void test_gradients_arrive(void **state)
{
	char path[1100];
	ls_profile p;
	ls_graph *graph = NULL;
	ls_node_trainer *t = NULL;
	ls_microbatch microbatch = { .count = 16 };

	snprintf(path, sizeof(path), "%s/mlp.json", (char *)*state);
	record(path, &p);
	assert_ok(ls_model_build(&graph, &(ls_model_options){ .size = sizeof(ls_model_options), .name = "mlp" }));
	assert_ok(ls_replay_fits(&p, graph, path));
	ls_replay_options replay = { .profile = &p, .speed = 1e6, .value = 0.25f };
	for (int devices = 1; devices <= 3;
	     devices++) { /* 1: updated while backward goes on, or 5 micro-batches joined */
		int64_t microbatches = devices == 1 ? 1 : 5;
		ls_node_trainer_options o = { .graph = graph,
					      .microbatch = 16,
					      .microbatches = microbatches,
					      .devices = devices,
					      .threads = 2,
					      .pin = LS_PIN_OFF,
					      .optimizer = "sgd",
					      .hyper = { .lr = 0.5 },
					      .schedule = { .name = "constant", .lr = 0.5 },
					      .next = same_microbatch,
					      .next_context = &microbatch,
					      .backend = &ls_backend_replay,
					      .backend_options = &replay };
		assert_ok(ls_node_trainer_new(&t, &o));
		for (int i = 0; i < 3; i++)
			assert_ok(
				ls_node_trainer_step(t, &(ls_node_trainer_assignment){ .microbatches = microbatches,
										       .samples = 16 * microbatches }));
		for (size_t i = 0; i < p.layers; i++)
			for (int k = 0; k < p.layer[i].ranges; k++)
				for (int64_t at = p.layer[i].range[k].begin; at < p.layer[i].range[k].end; at++)
					assert_true(fabsf(t->params[at] + 3 * 0.5f * 0.25f / 16) < 1e-6f);
		ls_node_trainer_free(t);
	}
	snprintf(p.layer[0].name, sizeof(p.layer[0].name), "other");
	assert_int_equal(ls_replay_fits(&p, graph, path), LS_EMISMATCH);
	assert_non_null(strstr(ls_last_error(), "layers[0], 'other'"));
	ls_graph_free(graph);
	ls_profile_release(&p);
	unlink(path);
}

typedef struct node {
	gang_node gang;
	ls_bench_options options;
	ls_bench_result result;
} node;

static ls_status bench(gang_node *self, ls_comm *comm)
{
	node *n = (node *)self;
	return ls_bench_among(&n->options, comm, &n->result);
}

static void run_nodes(node *nodes, int count)
{
	gang_run(nodes, sizeof(*nodes), count, bench);
}

static ls_bench_options replayed(const char *path)
{
	ls_bench_options o = LS_BENCH_OPTIONS_INIT;
	o.job.pin = "off";
	o.replay = path;
	o.warmup = 1, o.steps = 6, o.repeat = 2;
	return o;
}

/* Bytes are the exchange's formula; means are over devices; node 0 has it all. */
static void test_nodes(void **state)
{
	static const struct {
		int nodes, servers, devices;
		const char *wire;
		double worker, server; /* gradients that a node sends a step */
	} rows[] = { { 2, 0, 1, "fp32", 1, 0 },
		     { 2, 0, 2, "bf16", 0.5, 0 },
		     { 3, 0, 1, "fp32", 4.0 / 3, 0 },
		     { 3, 1, 1, "fp32", 1, 2 } };
	char path[1100];
	ls_profile p;

	snprintf(path, sizeof(path), "%s/nodes.json", (char *)*state);
	record(path, &p);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		node nodes[4] = { 0 };
		for (int k = 0; k < rows[i].nodes; k++) {
			nodes[k].options = replayed(path);
			nodes[k].options.job.devices = rows[i].devices;
			nodes[k].options.job.wire = rows[i].wire;
			nodes[k].options.job.strategy = rows[i].servers > 0 ? "ps" : "allreduce";
			nodes[k].options.job.servers = rows[i].servers;
		}
		run_nodes(nodes, rows[i].nodes);
		for (int k = 0; k < rows[i].nodes; k++)
			if (nodes[k].gang.status != LS_OK)
				fail_msg("row %zu, node %d: %s", i, k, nodes[k].gang.message);
		const ls_bench_result *r = &nodes[0].result;
		assert_int_equal(r->node, 0);
		assert_int_equal(r->node_count, rows[i].nodes);
		assert_int_equal(r->global_batch, 16 * rows[i].devices * (rows[i].nodes - rows[i].servers));
		assert_true(r->step_ms > 0 && r->compute_ms > 0 && r->samples_per_s > 0);
		for (int k = 0; k < rows[i].nodes; k++) {
			int server = k >= rows[i].nodes - rows[i].servers;
			double gradients = r->nodes[k].sent_bytes / (4.0 * (double)p.reachable);
			double expected = server ? rows[i].server : rows[i].worker;
			assert_int_equal(r->nodes[k].devices, server ? 0 : rows[i].devices);
			if (gradients < 0.7 * expected || gradients > 1.3 * expected)
				fail_msg("row %zu, node %d sends %g gradients a step, not %g", i, k, gradients,
					 expected);
		}
		for (int k = 0; k < rows[i].nodes; k++)
			ls_bench_result_release(&nodes[k].result);
	}
	ls_profile_release(&p);
	unlink(path);
}

static void test_nodes_must_agree(void **state)
{
	char path[1100], other[1100];
	ls_profile p;
	static const char *const parts[] = { "options.steps is not the same on node 0",
					     "the profile of options.replay is not the same", "/nowhere.json",
					     "options.wire is fp32 on node 0" };

	snprintf(path, sizeof(path), "%s/one.json", (char *)*state);
	snprintf(other, sizeof(other), "%s/other.json", (char *)*state);
	record(path, &p);
	p.layer[0].forward_s += 1e-3;
	assert_ok(ls_profile_write(&p, other));
	for (int k = 0; k < 4; k++) {
		node nodes[2] = { { .options = replayed(path) }, { .options = replayed(path) } };
		nodes[1].options.steps += k == 0;
		nodes[1].options.replay = k == 1 ? other : k == 2 ? "/nowhere.json" : path;
		nodes[1].options.job.wire = k == 3 ? "bf16" : "fp32";
		run_nodes(nodes, 2);
		for (int i = 0; i < 2; i++)
			assert_int_not_equal(nodes[i].gang.status, LS_OK);
		if (!strstr(nodes[0].gang.message, parts[k]) || nodes[1].gang.message[0] != '\0')
			fail_msg("case %d: node 0 says '%s', node 1 '%s'", k, nodes[0].gang.message,
				 nodes[1].gang.message);
	}
	ls_profile_release(&p);
	unlink(other);
	unlink(path);
}

TEST_MAIN_GROUP(temp_dir_make, temp_dir_remove, test_bench_without_a_shape, test_adds_up, test_gradients_arrive,
		test_nodes, test_nodes_must_agree, test_text)
