/*
 * Parts of the probe, with threads as nodes: the exchange bench sums correctly with every strategy and wire format and
 * detects wrong sums; links and the library's all-reduce are measured on node 0.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collectives.h"
#include "support/transport_threads.h"
#include "tools/probe/exchange_bench.h"
#include "tools/probe/link.h"
#include "tools/probe/speed.h"
#include "unit/test_main.h"

enum { NODES = 3, FLOATS = 50003, STEPS = 3 };

typedef struct node {
	ls_transport *transport;
	ls_comm *comm;
	int servers;
	const ls_codec *codec;
	ls_exchange_bench *bench;
	ls_probe_link link[NODES];
	double sum_s;
	float sums[4];
	ls_status status;
} node;

static ls_status run_exchange(node *n)
{
	static const int devices[NODES] = { 2, 1, 3 };
	ls_exchange_bench_options options = { .comm = n->comm,
					      .devices_of = devices,
					      .servers = n->servers,
					      .floats = FLOATS,
					      .bucket = 20000,
					      .codec = n->codec };
	double seconds = 0;

	LS_TRY(ls_exchange_bench_new(&n->bench, &options));
	for (int step = 0; step < STEPS; step++) {
		LS_TRY(ls_exchange_bench_step(n->bench, &seconds));
		LS_TRY(ls_exchange_bench_check(n->bench));
		assert_true(seconds > 0);
	}
	return LS_OK;
}

static ls_status measure(node *n)
{
	ls_link_options options = { .seconds = 0.001, .bytes = 1 << 20, .repeat = 2 };
	int rank = ls_comm_rank(n->comm);

	for (int peer = 1; peer < NODES; peer++)
		if (rank == 0 || rank == peer)
			LS_TRY(ls_link_measure(n->comm, peer, &options, &n->link[peer]));
	for (int i = 0; i < 4; i++)
		n->sums[i] = (float)(rank + i);
	return ls_link_sum(n->comm, n->sums, 4, &n->sum_s);
}

static void *run_node(void *argument)
{
	node *n = argument;
	ls_comm_options options = { .transport = n->transport, .timeout = 20 };

	n->status = ls_comm_new(&n->comm, &options);
	if (n->status == LS_OK)
		n->status = measure(n);
	if (n->status == LS_OK)
		n->status = run_exchange(n);
	if (n->status != LS_OK)
		fprintf(stderr, "%s\n", ls_last_error());
	if (n->comm)
		ls_comm_free(n->comm, n->status != LS_OK ? ls_last_error() : NULL);
	ls_exchange_bench_free(n->bench);
	return NULL;
}

static void run_nodes(node *nodes, int servers, const ls_codec *codec)
{
	ls_transport *transports[NODES];
	pthread_t threads[NODES];

	assert_int_equal(ls_threads_transports(transports, NODES, ls_comm_slots(NODES, 128 * NODES), 7), LS_OK);
	for (int i = 0; i < NODES; i++) {
		nodes[i] = (node){ .transport = transports[i], .servers = servers, .codec = codec };
		assert_int_equal(pthread_create(&threads[i], NULL, run_node, &nodes[i]), 0);
	}
	for (int i = 0; i < NODES; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(nodes[i].status, LS_OK);
}

static void test_nodes(void **state)
{
	static node nodes[NODES];
	(void)state;
	for (int servers = 0; servers < NODES; servers++) {
		run_nodes(nodes, servers, servers % 2 ? &ls_codec_sparse_bf16 : &ls_codec_sparse_fp32);
		for (int i = 0; i < NODES; i++)
			for (int k = 0; k < 4; k++)
				assert_true(nodes[i].sums[k] == (float)(3 + 3 * k));
	}
}

static void test_links(void **state)
{
	static node nodes[NODES];
	(void)state;
	run_nodes(nodes, 0, &ls_codec_sparse_bf16);
	for (int peer = 1; peer < NODES; peer++) {
		const ls_probe_link *link = &nodes[0].link[peer];
		assert_true(link->to_gbit_per_s > 0 && link->from_gbit_per_s > 0 && link->both_gbit_per_s > 0);
		assert_true(link->round_trip_us > 0 && nodes[peer].link[peer].round_trip_us == 0);
	}
	assert_true(nodes[0].sum_s > 0);
}

static void test_alone(void **state)
{
	(void)state;
	for (int devices = 1; devices <= 4; devices++) {
		ls_exchange_bench_options options = { .devices_of = &devices,
						      .floats = FLOATS,
						      .codec = &ls_codec_sparse_fp32 };
		ls_exchange_bench *bench = NULL;
		double seconds = 0;
		assert_int_equal(ls_exchange_bench_new(&bench, &options), LS_OK);
		assert_int_equal(ls_exchange_bench_check(bench), LS_ENUMERIC); /* nothing was summed yet */
		for (int step = 0; step < STEPS; step++)
			assert_int_equal(ls_exchange_bench_step(bench, &seconds), LS_OK);
		assert_int_equal(ls_exchange_bench_check(bench), LS_OK);
		ls_exchange_bench_free(bench);
	}
}

static void test_speed(void **state)
{
	ls_probe_node found = { .cores = 0 };
	(void)state;
	assert_int_equal(ls_speed_measure(&found, 0.003, 3, 100001), LS_OK);
	assert_true(found.cores >= 1 && found.memory_bytes >= 100001);
	assert_true(found.gflop_per_s_core > 0 && found.gflop_per_s > 0);
	assert_true(found.memory.read_gb_per_s > 0 && found.memory.copy_gb_per_s > 0);
	assert_true(found.memory_core.read_gb_per_s > 0 && found.memory_core.copy_gb_per_s > 0);
}

TEST_MAIN(test_alone, test_nodes, test_links, test_speed)
