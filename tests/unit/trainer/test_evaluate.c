/*
 * Evaluations: the same bits on any number of nodes, devices and servers and for any shares, one end for all when one
 * node is asked to stop, an error of one node reported there and ending the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lockstep/models.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/devices.h"
#include "base/log.h"
#include "trainer/evaluate.h"
#include "unit/trainer/gang.h"

enum { SAMPLES = 530, BATCH = 32 }; /* 17 micro-batches, the last one short */

/* What all nodes evaluate. */
typedef struct subject {
	ls_graph *graph;
	ls_dataset *dataset;
	float *params, *buffers;
} subject;

static subject common;

static int make_subject(void **state)
{
	ls_dataset_options d = LS_DATASET_OPTIONS_INIT;
	ls_model_options m = {
		.size = sizeof(ls_model_options), .name = "cnn", .channels = 1, .height = 28, .width = 28, .classes = 10
	};
	(void)state;
	d.name = "glyphs";
	d.split = LS_SPLIT_TEST;
	d.samples = SAMPLES;
	if (ls_dataset_open(&common.dataset, &d) != LS_OK || ls_model_build(&common.graph, &m) != LS_OK)
		return 1;
	const ls_param_table *table = &common.graph->params;
	common.params = aligned_alloc(64, (table->total + 16) / 16 * 64);
	common.buffers = calloc(table->buffers + 16, sizeof(float));
	return ls_params_init(table, 3, common.params, common.buffers) != LS_OK;
}

static int free_subject(void **state)
{
	(void)state;
	free(common.buffers);
	free(common.params);
	ls_graph_free(common.graph);
	ls_dataset_free(common.dataset);
	return 0;
}

/* One node's evaluation. */
typedef struct node {
	gang_node gang;
	const int *devices_of;
	const double *weight;
	int devices, threads;
	const ls_dataset *dataset;
	int (*stop)(void *context);
	int passes;
	int logits[SAMPLES]; /* how often each sample came */
	ls_eval_result result;
} node;

static void count_samples(void *context, const ls_microbatch *microbatch, const float *logits)
{
	node *n = context;
	assert_non_null(logits);
	for (int64_t i = 0; i < microbatch->count; i++)
		n->logits[microbatch->samples[i]]++;
}

static ls_status evaluate(node *n, ls_comm *comm, ls_devices **devices)
{
	ls_evaluator *e = NULL;
	ls_devices_options how = { .count = n->devices, .threads = n->threads, .pin = LS_PIN_OFF };
	if (n->devices > 0)
		LS_TRY(ls_devices_open(devices, &ls_backend_cpu, &how));
	ls_evaluator_options options = { .graph = common.graph,
					 .dataset = n->dataset,
					 .batch = BATCH,
					 .backend = &ls_backend_cpu,
					 .devices = n->devices,
					 .on = *devices,
					 .comm = comm,
					 .devices_of = n->devices_of,
					 .weight = n->weight };
	LS_TRY(ls_evaluator_new(&e, &options));
	ls_evaluator_set_stop(e, n->stop, NULL);
	ls_status status = LS_OK;
	for (int i = 0; i < n->passes && status == LS_OK; i++)
		status = ls_evaluator_run(e, common.params, common.buffers, i == 0 ? count_samples : NULL, n,
					  &n->result);
	ls_evaluator_free(e);
	return status;
}

static ls_status live(gang_node *self, ls_comm *comm)
{
	ls_devices *devices = NULL;
	ls_status status = evaluate((node *)self, comm, &devices);

	if (comm)
		ls_comm_free(comm, status == LS_OK || status == LS_EINTERRUPTED ? NULL : ls_last_error());
	ls_devices_close(devices);
	return status;
}

static void run_nodes(node *nodes, int count, const int *devices, const double *weight)
{
	for (int i = 0; i < count; i++) {
		nodes[i].devices_of = devices;
		nodes[i].devices = devices[i];
		nodes[i].weight = weight;
		nodes[i].dataset = nodes[i].dataset ? nodes[i].dataset : common.dataset;
		nodes[i].threads = nodes[i].threads > 0 ? nodes[i].threads : 1;
		nodes[i].passes = nodes[i].passes > 0 ? nodes[i].passes : 1;
	}
	gang_run(nodes, sizeof(*nodes), count, live);
}

static ls_eval_result alone(int devices, int threads)
{
	node n = { .gang.live = live, .devices = devices, .threads = threads, .dataset = common.dataset, .passes = 1 };
	gang_live(&n.gang);
	if (n.gang.status != LS_OK)
		fail_msg("%d devices: %s", devices, n.gang.message);
	for (int i = 0; i < SAMPLES; i++)
		assert_int_equal(n.logits[i], 1);
	return n.result;
}

static void expect_same(const ls_eval_result *got, const ls_eval_result *expected, const char *where)
{
	if (got->loss != expected->loss || got->accuracy != expected->accuracy || got->samples != expected->samples)
		fail_msg("%s: loss %.17g, accuracy %.17g, expected %.17g and %.17g", where, got->loss, got->accuracy,
			 expected->loss, expected->accuracy);
}

static void test_devices(void **state)
{
	ls_eval_result expected = alone(1, 1);
	(void)state;
	assert_int_equal(expected.samples, SAMPLES);
	assert_true(expected.loss > 1 && expected.loss < 4);
	for (int devices = 2; devices <= 20; devices += devices < 4 ? 1 : 8) {
		ls_eval_result got = alone(devices, devices == 3 ? 2 : 1);
		expect_same(&got, &expected, "one node");
	}
}

static void test_nodes(void **state)
{
	static const struct {
		int nodes, devices[GANG_MAX];
		double weight[GANG_MAX];
	} rows[] = {
		{ 2, { 1, 1 }, { 1, 1 } },
		{ 2, { 2, 1 }, { 2, 1 } },
		{ 3, { 1, 2, 3 }, { 5, 1, 1 } },
		{ 3, { 1, 1, 0 }, { 1, 1, 0 } },
		{ 4, { 2, 1, 0, 0 }, { 1, 9, 0, 0 } },
		{ 5, { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 } },
	};
	ls_eval_result expected = alone(1, 1);
	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		node *nodes = calloc(GANG_MAX, sizeof(*nodes));
		for (int i = 0; i < rows[r].nodes; i++)
			nodes[i].passes = 2;
		run_nodes(nodes, rows[r].nodes, rows[r].devices, rows[r].weight);
		for (int i = 0; i < rows[r].nodes; i++) {
			if (nodes[i].gang.status != LS_OK)
				fail_msg("row %zu, node %d: %s", r, i, nodes[i].gang.message);
			expect_same(&nodes[i].result, &expected, "several nodes");
		}
		for (int s = 0; s < SAMPLES; s++) { /* each once, somewhere */
			int times = 0;
			for (int i = 0; i < rows[r].nodes; i++)
				times += nodes[i].logits[s];
			assert_int_equal(times, 1);
		}
		free(nodes);
	}
}

static int at_once(void *context)
{
	(void)context;
	return 1;
}

static void test_stop(void **state)
{
	static const int devices[] = { 2, 1, 1, 0 };
	static const double weight[] = { 1, 1, 1, 0 };
	(void)state;
	for (int stopped = 0; stopped < 3; stopped++) {
		node *nodes = calloc(GANG_MAX, sizeof(*nodes));
		nodes[stopped].stop = at_once;
		run_nodes(nodes, 4, devices, weight);
		for (int i = 0; i < 4; i++)
			if (nodes[i].gang.status != LS_EINTERRUPTED)
				fail_msg("node %d stopped, node %d: %s %s", stopped, i,
					 ls_status_name(nodes[i].gang.status), nodes[i].gang.message);
		free(nodes);
	}
}

static ls_status lost(void *self, uint64_t index, float *image, int32_t *label)
{
	(void)self;
	memset(image, 0, 28 * 28 * sizeof(*image));
	*label = 0;
	return index == 300 ? ls_fail(LS_EIO, "sample 300 is lost") : LS_OK;
}

/* Sample 300 is the second node's, and of its third device. */
static void test_failure(void **state)
{
	static const ls_dataset_ops ops = { .read = lost };
	static const int devices[] = { 1, 3 };
	static const double weight[] = { 1, 3 };
	ls_dataset_info info = {
		.name = "own", .samples = SAMPLES, .channels = 1, .height = 28, .width = 28, .classes = 10
	};
	node *nodes = calloc(GANG_MAX, sizeof(*nodes));
	ls_dataset *set = NULL;
	(void)state;
	assert_int_equal(ls_dataset_new(&set, &info, &ops, NULL), LS_OK);
	nodes[0].dataset = nodes[1].dataset = set;
	run_nodes(nodes, 2, devices, weight);
	assert_int_equal(nodes[1].gang.status, LS_EIO);
	assert_non_null(strstr(nodes[1].gang.message, "sample 300 is lost"));
	assert_int_not_equal(nodes[0].gang.status, LS_OK);
	ls_dataset_free(set);
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_failure),
	};
	ls_log_set_level(LS_LOG_ERROR);
	return cmocka_run_group_tests(tests, make_subject, free_subject);
}
