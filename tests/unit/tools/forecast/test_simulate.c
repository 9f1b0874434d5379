/*
 * Simulated steps against results computed by hand: one node, links that are never or always the limit, servers,
 * stragglers, trainers without overlap; and few nodes simulated one by one against the same nodes as one group.
 */
#include "tools/forecast/simulate.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 8, LAYER_FLOATS = 1 << 19 }; /* 16.8 MB in all */

static ls_profile_layer layers[LAYERS];
static ls_profile profile = { .model = "made up",
			      .optimizer = "adam",
			      .batch = 32,
			      .tiles = 1,
			      .threads = 1,
			      .steps = 1,
			      .loss_s = 0.004,
			      .other_s = 0.008,
			      .update_s = 0.008,
			      .step_s = 0.1,
			      .reachable = LAYERS * LAYER_FLOATS,
			      .layers = LAYERS,
			      .layer = layers };

/* 0.024 forward, 0.056 backward, 0.004 loss, 0.008 update, 0.008 other: 0.1 s. */
static int make_profile(void **state)
{
	(void)state;
	for (int i = 0; i < LAYERS; i++)
		layers[i] = (ls_profile_layer){ .name = "layer",
						.forward_s = 0.003,
						.backward_s = 0.007,
						.ranges = 1,
						.range = { { (int64_t)i * LAYER_FLOATS,
							     (int64_t)(i + 1) * LAYER_FLOATS } } };
	return 0;
}

typedef struct setting {
	int64_t nodes, devices, servers;
	int64_t cores; /* 0: enough */
	double gbit, spread;
	int after, bf16;
	int messages; /* messages cost CPU time */
} setting;

static ls_simulated simulate(const setting *s)
{
	ls_scenario_options o = {
		.profile = &profile, .servers = s->servers, .bf16 = s->bf16, .microbatches = 1, .after = s->after
	};
	ls_simulated out;
	ls_cluster c;
	ls_scenario scenario;

	assert_int_equal(ls_cluster_of(&c, s->nodes, s->devices > 0 ? s->devices : 1, s->gbit), LS_OK);
	c.spread = s->spread;
	c.kind[0].latency_us = 0;
	c.kind[0].cores = s->cores;
	c.message_us = s->messages ? 10 : 0;
	c.net_ns_per_byte = s->messages ? 0.4 : 0;
	o.cluster = &c;
	assert_int_equal(ls_scenario_make(&scenario, &o), LS_OK);
	assert_int_equal(ls_simulate(&scenario, &out), LS_OK);
	ls_scenario_release(&scenario);
	ls_cluster_release(&c);
	return out;
}

static void near(const char *what, double got, double expected, double part)
{
	if (!(fabs(got - expected) <= part * expected))
		fail_msg("%s is %g, not within %g %% of %g", what, got, 100 * part, expected);
}

static void test_alone(void **state)
{
	ls_simulated r = simulate(&(setting){ .nodes = 1, .gbit = 1 });

	(void)state;
	near("the step of one node", r.step_s, 0.1, 1e-6);
	near("its rate", r.samples_per_s, 320, 1e-6);
	assert_string_equal(r.bottleneck, "compute");
	r = simulate(&(setting){ .nodes = 1, .devices = 4, .gbit = 1 });
	/* a quarter of the update each; summing takes 0.4 ns per float, four times and on four devices */
	near("the step of four devices", r.step_s, 0.092 + 0.008 / 4 + 0.4e-9 * LAYERS * LAYER_FLOATS, 0.005);
}

static void test_fast_links(void **state)
{
	(void)state;
	for (int64_t nodes = 2; nodes <= 1000; nodes = nodes * 5 + 1) {
		ls_simulated r = simulate(&(setting){ .nodes = nodes, .gbit = 1e5 });
		near("the step on links without limits", r.step_s, 0.092,
		     0.05); /* the update is spread over the nodes */
	}
}

/* When the communication thread has its own core, a step takes as long as computing. When it shares the core, the times
 * add up: computing, its part of the update, and the CPU cost of bytes and messages at both ends. */
static void test_few_cores(void **state)
{
	(void)state;
	for (int64_t nodes = 2; nodes <= 5; nodes++) {
		const double others = (double)(nodes - 1), bytes = 4.0 * LAYERS * LAYER_FLOATS;
		const double buckets = bytes / (1 << 20);         /* of 1024 kB, the default */
		double sent = 2 * bytes * others / (double)nodes; /* partial sums, and new values */
		double messages = 2 * buckets * others;           /* both, to every other node */
		double work = 0.092 + 0.008 / (double)nodes + 2 * (0.4e-9 * sent + 10e-6 * messages);
		ls_simulated one = simulate(&(setting){ .nodes = nodes, .cores = 1, .gbit = 10, .messages = 1 });
		ls_simulated two = simulate(&(setting){ .nodes = nodes, .cores = 2, .gbit = 10, .messages = 1 });
		near("a step on one core", one.step_s, work, 0.015);
		near("a step on two cores", two.step_s, 0.092, 0.005);
	}
}

/* Each direction carries (N - 1) / N of the gradient twice; on slow links that is the whole step. */
static void test_slow_links(void **state)
{
	const double bytes = 4.0 * LAYERS * LAYER_FLOATS;

	(void)state;
	for (int64_t nodes = 2; nodes <= 12; nodes++) {
		double wire = 2 * bytes * (double)(nodes - 1) / (double)nodes / (0.1e9 / 8);
		ls_simulated r = simulate(&(setting){ .nodes = nodes, .gbit = 0.1 });
		assert_true(r.step_s >= wire * 0.999);
		near("the step on slow links", r.step_s, wire, 0.06);
		near("what a node sends", r.sent_bytes, 2 * bytes * (double)(nodes - 1) / (double)nodes, 0.05);
		assert_string_equal(r.bottleneck, "links");
		ls_simulated half = simulate(&(setting){ .nodes = nodes, .gbit = 0.1, .bf16 = 1 });
		near("the same with half the bytes", half.step_s, wire / 2, 0.12);
	}
}

/* All workers send to one server: its link carries the gradient of each worker, in and out. */
static void test_server(void **state)
{
	const double bytes = 4.0 * LAYERS * LAYER_FLOATS;

	(void)state;
	for (int64_t workers = 2; workers <= 9; workers += 7) {
		double wire = bytes * (double)workers / (0.1e9 / 8);
		ls_simulated r = simulate(&(setting){ .nodes = workers + 1, .servers = 1, .gbit = 0.1 });
		assert_true(r.step_s >= wire * 0.999);
		near("the step with one server", r.step_s, wire, 0.15);
		near("what the server sends", r.sent_bytes, bytes * (double)workers, 0.1);
		assert_true(r.link_busy > 0.8 && r.link_busy <= 1);
		assert_string_equal(r.bottleneck, "servers' links");
	}
}

static void test_straggler(void **state)
{
	ls_simulated r = simulate(&(setting){ .nodes = 64, .gbit = 1e5, .spread = 0.1 });

	(void)state;
	near("the slowest of 64", r.step_s, 0.092 * (1 + 0.1 * ls_slowest_of(64)), 0.05);
	near("how slow that is", ls_slowest_of(64), 2.34, 0.01);
	assert_true(ls_slowest_of(1) == 0);
	assert_string_equal(r.bottleneck, "slowest node");
}

static void test_after(void **state)
{
	const double bytes = 4.0 * LAYERS * LAYER_FLOATS, wire = bytes / (10e9 / 8);
	ls_simulated late = simulate(&(setting){ .nodes = 2, .gbit = 10, .after = 1 }),
		     early = simulate(&(setting){ .nodes = 2, .gbit = 10 });

	(void)state;
	near("without overlap the wire comes on top", late.step_s, 0.092 + wire, 0.06);
	assert_true(early.step_s < late.step_s - 0.5 * wire);
}

/* Six nodes are simulated one by one, seven as one group: the results are continuous. */
static void test_parties_are_nodes(void **state)
{
	static const double rates[] = { 0.1, 1, 10 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		ls_simulated six = simulate(&(setting){ .nodes = 6, .gbit = rates[i] }),
			     seven = simulate(&(setting){ .nodes = 7, .gbit = rates[i] });
		near("a step on seven nodes, beside six", seven.step_s, six.step_s, 0.06);
	}
}

/* More nodes, faster links and fewer bytes may not help, but never make a step much slower. */
static void test_no_cliffs(void **state)
{
	(void)state;
	for (int64_t nodes = 8; nodes <= 8192; nodes *= 2) {
		double before = INFINITY;
		for (double gbit = 1; gbit <= 100; gbit *= 10) {
			ls_simulated r = simulate(&(setting){ .nodes = nodes, .gbit = gbit, .messages = 1 });
			ls_simulated half =
				simulate(&(setting){ .nodes = nodes, .gbit = gbit, .bf16 = 1, .messages = 1 });
			ls_simulated more =
				simulate(&(setting){ .nodes = nodes + nodes / 16, .gbit = gbit, .messages = 1 });
			if (!(r.step_s <= before * 1.02 && half.step_s <= r.step_s * 1.02 &&
			      more.step_s <= r.step_s * 1.25))
				fail_msg("%g Gbit/s, %d nodes: %g s, slower links %g, bf16 %g, more nodes %g", gbit,
					 (int)nodes, r.step_s, before, half.step_s, more.step_s);
			before = r.step_s;
		}
	}
}

static void test_refusals(void **state)
{
	ls_cluster c;
	ls_scenario scenario;

	(void)state;
	assert_int_equal(ls_cluster_of(&c, 2, 1, 1), LS_OK);
	ls_scenario_options o = { .profile = &profile, .cluster = &c, .servers = 2, .microbatches = 1 };
	assert_int_equal(ls_scenario_make(&scenario, &o), LS_EINVALID);
	c.kind[0].devices = 0;
	o.servers = 1;
	assert_int_equal(ls_scenario_make(&scenario, &o), LS_EINVALID);
	ls_cluster_release(&c);
}

TEST_MAIN_GROUP(make_profile, NULL, test_alone, test_fast_links, test_few_cores, test_slow_links, test_server,
		test_straggler, test_after, test_parties_are_nodes, test_no_cliffs, test_refusals)
