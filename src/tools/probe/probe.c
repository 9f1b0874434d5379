/*
 * probe.c - the stages of a probe, on one node or on several.
 *
 * Several nodes go through the same stages: each measures itself (nodes of one host in turn), node 0 and each other
 * node measure their link, and then all exchange a gradient with every strategy and wire format, in turns with the MPI
 * library's own all-reduce. The number of repeats follows from the options, which are the same on all nodes.
 *
 * Exchanges are freed after the communication thread, which may still carry one of their messages.
 */
#include <lockstep/probe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/pin.h"
#include "cluster/launched.h"
#include "comm/collectives.h"
#include "comm/init.h"
#include "comm/transport.h"
#include "kernels/gemm.h"
#include "metrics/machine.h"
#include "metrics/progress.h"
#include "tools/probe/exchange_bench.h"
#include "tools/probe/link.h"
#include "tools/probe/speed.h"

enum { REPEATS = 9, REPEATS_QUICK = 3, REPEATS_MAX = 99, WARM_UPS = 2 };

#define GRADIENT_BYTES ((int64_t)44 * 1000 * 1000)
#define GRADIENT_BYTES_QUICK ((int64_t)4 * 1000 * 1000)
#define GRADIENT_SECONDS 0.5 /* one way over the slowest link: over slow links nodes exchange a smaller gradient */
#define GRADIENT_FLOATS_LEAST (1e6)
#define STREAM_BYTES ((size_t)256 << 20) /* by all cores together: more than most caches hold */
#define STREAM_BYTES_LEAST ((size_t)32 << 20)
#define STREAM_BYTES_QUICK ((size_t)8 << 20)
#define PATIENCE 2.0 /* seconds without output */

typedef struct stage {
	ls_progress *progress;
	double started;
	uint64_t done, total;
} stage;

typedef struct probe {
	const ls_probe_options *o;
	ls_comm *comm; /* NULL: alone */
	int node, nodes;
	size_t floats;
	size_t floats_between; /* exchanged between nodes */
	int repeat;
	int *devices_of;    /* (nodes) */
	ls_probe_node mine; /* figures of this node */
	ls_probe_result *result;
	ls_exchange_bench *benches[LS_PROBE_BETWEEN_MAX];
	int bench_count;
	stage stage;
} probe;

/* ---- progress ---- */

static void show_progress(probe *p, const char *what)
{
	stage *s = &p->stage;
	if (p->node != 0)
		return;
	if (isatty(STDERR_FILENO))
		ls_progress_update(s->progress, what, s->done, s->total, "", -1);
	else if (ls_clock_seconds() - s->started > PATIENCE)
		ls_log_note("probe: %s (%llu of %llu)", what, (unsigned long long)s->done + 1,
			    (unsigned long long)s->total);
	s->done++;
}

/* ---- this node ---- */

static void copy_text(char *to, size_t size, const json_t *machine, const char *key)
{
	const char *text = json_string_value(json_object_get(machine, key));
	snprintf(to, size, "%s", text ? text : "");
}

static void describe(probe *p)
{
	ls_probe_node *n = &p->mine;
	json_t *machine = ls_machine_describe();

	copy_text(n->host, sizeof(n->host), machine, "hostname");
	copy_text(n->cpu, sizeof(n->cpu), machine, "cpu");
	copy_text(n->system, sizeof(n->system), machine, "kernel");
	json_decref(machine);
	snprintf(n->version, sizeof(n->version), "%s", ls_version());
	snprintf(n->kernels, sizeof(n->kernels), "%s", ls_gemm_backend());
	snprintf(n->isa, sizeof(n->isa), "%s", ls_isa_name(ls_isa_get()));
	ls_mpi_version(n->mpi, sizeof(n->mpi));
	n->devices = p->devices_of[p->node];
	n->numa_domains = ls_pin_domains();
}

static ls_status measure_speed(probe *p)
{
	size_t cores = (size_t)ls_pin_cores();
	size_t bytes = STREAM_BYTES / cores > STREAM_BYTES_LEAST ? STREAM_BYTES / cores : STREAM_BYTES_LEAST;
	size_t least =
		ls_memory_available() / (4 * cores); /* two buffers per core, and half of the memory stays free */

	if (p->o->quick)
		bytes = STREAM_BYTES_QUICK;
	return ls_speed_measure(&p->mine, p->o->quick ? 0.03 : 0.3, p->repeat, bytes < least ? bytes : least);
}

static ls_status time_inside(probe *p, ls_exchange_bench *bench, double *median)
{
	double taken[REPEATS_MAX];
	for (int i = 0; i < WARM_UPS; i++)
		LS_TRY(ls_exchange_bench_step(bench, &taken[0]));
	LS_TRY(ls_exchange_bench_check(bench));
	for (int i = 0; i < p->repeat; i++)
		LS_TRY(ls_exchange_bench_step(bench, &taken[i]));
	*median = ls_median(taken, (size_t)p->repeat);
	return LS_OK;
}

static ls_status measure_inside(probe *p, int devices, ls_probe_inside *out)
{
	ls_exchange_bench_options options = { .devices_of = &devices,
					      .codec = &ls_codec_sparse_fp32,
					      .floats = p->floats,
					      .bucket = (size_t)p->o->bucket_bytes / sizeof(float) };
	ls_exchange_bench *bench = NULL;
	double seconds = 0;

	LS_TRY(ls_exchange_bench_new(&bench, &options));
	ls_status status = time_inside(p, bench, &seconds);
	ls_exchange_bench_free(bench);
	LS_TRY(status);
	*out = (ls_probe_inside){ .devices = devices,
				  .seconds = seconds,
				  .gb_per_s = (double)p->floats * sizeof(float) / 1e9 / seconds };
	return LS_OK;
}

/* Two devices, to compare with other libraries; and all cores, as in training. */
static ls_status measure_insides(probe *p)
{
	int given = p->devices_of[p->node], cores = p->mine.cores;

	if (p->o->devices > 0 && given > 1)
		return measure_inside(p, given, &p->mine.inside[0]);
	if (cores > 1)
		LS_TRY(measure_inside(p, 2, &p->mine.inside[0]));
	return cores > 2 ? measure_inside(p, cores, &p->mine.inside[1]) : LS_OK;
}

static ls_status measure_node(probe *p)
{
	show_progress(p, "arithmetic and memory");
	LS_TRY(measure_speed(p));
	show_progress(p, "exchange inside the node");
	return measure_insides(p);
}

/* ---- among nodes ---- */

/* Number of lower-ranked nodes on this host, and the largest number of nodes on any host. */
static void count_turns(const probe *p, int *mine, int *turns)
{
	*mine = *turns = 0;
	for (int a = 0; a < p->nodes; a++) {
		int before = 0;
		for (int b = 0; p->comm && b < a; b++)
			before += strcmp(ls_comm_host(p->comm, a), ls_comm_host(p->comm, b)) == 0;
		*turns = before + 1 > *turns ? before + 1 : *turns;
		if (a == p->node)
			*mine = before;
	}
}

static ls_status measure_nodes(probe *p)
{
	int mine, turns;

	count_turns(p, &mine, &turns);
	for (int turn = 0; turn < turns; turn++) {
		if (turn == mine)
			LS_TRY(measure_node(p));
		LS_TRY(ls_comm_barrier(p->comm, "probe of the nodes"));
	}
	return ls_comm_gather(p->comm, 0, &p->mine, sizeof(p->mine), p->result->nodes, "probe of the nodes");
}

static ls_status measure_links(probe *p)
{
	ls_link_options options = { .seconds = p->o->quick ? 0.03 : 0.4,
				    .bytes = p->floats * sizeof(float),
				    .repeat = p->repeat > 5 ? 5 : p->repeat };

	for (int peer = 1; peer < p->nodes; peer++) {
		if (p->node != 0 && p->node != peer)
			continue;
		show_progress(p, "link to node 0");
		LS_TRY(ls_link_measure(p->comm, peer, &options, &p->result->nodes[peer].link));
	}
	return ls_comm_barrier(p->comm, "probe of the links");
}

/* The maximum over all nodes, on all nodes. */
static ls_status agree_most(probe *p, double *value)
{
	double *all = calloc((size_t)p->nodes, sizeof(double));
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory to compare nodes");
	ls_status status = ls_comm_allgather(p->comm, value, sizeof(*value), all, "time of a probe");
	for (int i = 0; status == LS_OK && i < p->nodes; i++)
		*value = all[i] > *value ? all[i] : *value;
	free(all);
	return status;
}

/* Bytes sent or received by this node so far, whichever is more. */
static double count_bytes(const probe *p)
{
	double sent = 0, received = 0;
	for (int peer = 0; peer < p->nodes; peer++) {
		ls_traffic t = ls_comm_traffic(p->comm, peer);
		sent += peer != p->node ? (double)t.bytes_sent : 0;
		received += peer != p->node ? (double)t.bytes_received : 0;
	}
	return sent > received ? sent : received;
}

typedef struct turns {
	double exchange[REPEATS_MAX], library[REPEATS_MAX];
	double bytes;
	int count;
} turns;

static ls_status take_turn(probe *p, ls_exchange_bench *bench, float *values, turns *t, int i)
{
	double before = count_bytes(p);

	LS_TRY(ls_exchange_bench_step(bench, &t->exchange[i]));
	t->bytes = count_bytes(p) - before;
	LS_TRY(agree_most(p, &t->exchange[i]));
	LS_TRY(ls_link_sum(p->comm, values, p->floats_between, &t->library[i]));
	return agree_most(p, &t->library[i]);
}

/* Slow links get fewer repeats; the number follows from times that are the same on all nodes. */
static ls_status take_turns(probe *p, ls_exchange_bench *bench, float *values, turns *t)
{
	for (int i = 0; i < WARM_UPS; i++)
		LS_TRY(take_turn(p, bench, values, t, 0));
	LS_TRY(ls_exchange_bench_check(bench));
	double patience = p->o->quick ? 0.5 : 10, once = t->exchange[0] + t->library[0];
	t->count = p->repeat * once < patience ? p->repeat : p->repeat < 3 ? p->repeat : 3;
	for (int i = 0; i < t->count; i++)
		LS_TRY(take_turn(p, bench, values, t, i));
	return agree_most(p, &t->bytes);
}

static double slowest_link(const probe *p)
{
	double least = p->result->nodes[1].link.both_gbit_per_s;
	for (int i = 2; i < p->nodes; i++)
		if (p->result->nodes[i].link.both_gbit_per_s < least)
			least = p->result->nodes[i].link.both_gbit_per_s;
	return least;
}

static void note_between(probe *p, int servers, const ls_codec *codec, turns *t)
{
	ls_probe_between *b = &p->result->between[p->result->between_count++];
	double gb = (double)p->floats_between * sizeof(float) / 1e9;

	snprintf(b->strategy, sizeof(b->strategy), "%s",
		 (servers > 0 ? &ls_strategy_ps : &ls_strategy_allreduce)->info.name);
	snprintf(b->wire, sizeof(b->wire), "%s", codec->wire);
	b->servers = servers;
	b->bytes = p->floats_between * sizeof(float);
	b->seconds = ls_median(t->exchange, (size_t)t->count);
	b->gb_per_s = gb / b->seconds;
	b->wire_bytes = t->bytes;
	b->gbit_per_s = t->bytes * 8 / 1e9 / b->seconds;
	b->limit_gbit_per_s = p->node == 0 ? slowest_link(p) : 0;
	b->library_seconds = ls_median(t->library, (size_t)t->count);
	b->library_gb_per_s = gb / b->library_seconds;
}

static ls_status measure_between(probe *p, int servers, const ls_codec *codec)
{
	ls_exchange_bench_options options = { .comm = p->comm,
					      .devices_of = p->devices_of,
					      .servers = servers,
					      .floats = p->floats_between,
					      .bucket = (size_t)p->o->bucket_bytes / sizeof(float),
					      .codec = codec };
	size_t bytes = p->floats_between * sizeof(float);
	void *values = NULL;
	turns t = { .count = 0 };

	show_progress(p, servers > 0 ? "exchange with parameter servers" : "exchange between nodes");
	LS_TRY(ls_exchange_bench_new(&p->benches[p->bench_count], &options));
	ls_exchange_bench *bench = p->benches[p->bench_count++];
	LS_TRY(ls_buffer_new(&values, bytes, "values to sum"));
	memset(values, 0, bytes);
	ls_status status = take_turns(p, bench, values, &t);
	ls_buffer_free(values, bytes);
	if (status == LS_OK)
		note_between(p, servers, codec, &t);
	return status;
}

/* Unless options.bytes says how much: what takes a second over the slowest link, but 4 MB at
 * least. Node 0 knows the links. */
static ls_status choose_gradient(probe *p)
{
	double wanted = p->node == 0 ? (double)p->floats : 0;

	if (p->node == 0 && p->o->bytes == 0) {
		double floats = slowest_link(p) * 1e9 / 8 * GRADIENT_SECONDS / sizeof(float);
		wanted = floats < wanted ? (floats > GRADIENT_FLOATS_LEAST ? floats : GRADIENT_FLOATS_LEAST) : wanted;
	}
	LS_TRY(agree_most(p, &wanted));
	p->floats_between = (size_t)wanted;
	return LS_OK;
}

static ls_status measure_among(probe *p)
{
	LS_TRY(measure_links(p));
	LS_TRY(choose_gradient(p));
	LS_TRY(measure_between(p, 0, &ls_codec_sparse_fp32));
	LS_TRY(measure_between(p, 0, &ls_codec_sparse_bf16));
	if (p->o->servers > 0) {
		LS_TRY(measure_between(p, (int)p->o->servers, &ls_codec_sparse_fp32));
		LS_TRY(measure_between(p, (int)p->o->servers, &ls_codec_sparse_bf16));
	}
	return LS_OK;
}

/* ---- the whole probe ---- */

/* What must be the same on all nodes; otherwise they would wait for each other for ever. */
typedef struct probe_settings {
	char version[32];
	int64_t bytes, bucket_bytes, servers, repeat, quick, devices;
} probe_settings;

static ls_status compare(const probe *p, const probe_settings *all)
{
	for (int i = 1; i < p->nodes; i++) {
		probe_settings first = all[0], other = all[i];
		if (strcmp(first.version, other.version) != 0)
			return ls_fail(LS_EMISMATCH, "node 0 (%s) runs lockstep %s, node %d (%s) %s",
				       ls_comm_host(p->comm, 0), first.version, i, ls_comm_host(p->comm, i),
				       other.version);
		if (first.bytes != other.bytes || first.bucket_bytes != other.bucket_bytes ||
		    first.servers != other.servers || first.repeat != other.repeat || first.quick != other.quick)
			return ls_fail(LS_EMISMATCH, "node %d (%s) was started with other options than node 0 (%s)", i,
				       ls_comm_host(p->comm, i), ls_comm_host(p->comm, 0));
	}
	return LS_OK;
}

static ls_status agree(probe *p)
{
	int given = 0;
	LS_TRY(ls_mpi_launched_devices(p->node, &given));
	int devices = given > 0 ? given : (int)p->o->devices;
	probe_settings mine = { .bytes = (int64_t)p->floats,
				.bucket_bytes = p->o->bucket_bytes,
				.servers = p->o->servers,
				.repeat = p->repeat,
				.quick = p->o->quick,
				.devices = devices > 0 ? devices : ls_pin_cores() };
	probe_settings *all = calloc((size_t)p->nodes, sizeof(*all));

	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for %d nodes", p->nodes);
	snprintf(mine.version, sizeof(mine.version), "%s", ls_version());
	ls_status status = ls_comm_allgather(p->comm, &mine, sizeof(mine), all, "options of the probe");
	if (status == LS_OK)
		status = compare(p, all);
	for (int i = 0; i < p->nodes; i++)
		p->devices_of[i] = (int)all[i].devices;
	free(all);
	return status;
}

static ls_status run(probe *p)
{
	int kinds = p->o->servers > 0 ? 4 : 2;

	p->devices_of = calloc((size_t)p->nodes, sizeof(*p->devices_of));
	p->result->nodes = calloc((size_t)p->nodes, sizeof(*p->result->nodes));
	if (!p->devices_of || !p->result->nodes)
		return ls_fail(LS_EMEMORY, "no memory for %d nodes", p->nodes);
	p->stage.started = ls_clock_seconds();
	p->stage.total = 2 + (uint64_t)(p->nodes > 1 ? p->nodes - 1 + kinds : 0);
	p->stage.progress = p->node == 0 ? ls_progress_begin() : NULL;
	LS_TRY(agree(p));
	describe(p);
	LS_TRY(measure_nodes(p));
	return p->nodes > 1 ? measure_among(p) : LS_OK;
}

static ls_status check(const ls_probe_options *o, int nodes)
{
	if (o->devices < 0 || o->devices > 4096)
		return ls_fail(LS_EINVALID, "options.devices must be 0 (all cores) to 4096, not %lld",
			       (long long)o->devices);
	if (o->bytes != 0 && (o->bytes < 4096 || o->bytes > INT64_C(1) << 36))
		return ls_fail(LS_EINVALID, "options.bytes must be 4096 to 2^36, not %lld", (long long)o->bytes);
	if (o->repeat < 0 || o->repeat > REPEATS_MAX || o->bucket_bytes < 0 || o->timeout < 1)
		return ls_fail(LS_EINVALID,
			       "options.repeat must be 0 (the default) to %d, options.bucket_bytes at least 0 and "
			       "options.timeout at least 1",
			       REPEATS_MAX);
	if (o->servers < 0 || o->servers >= nodes)
		return o->servers == 0
			       ? LS_OK
			       : ls_fail(LS_EINVALID, "options.servers %lld of %d %s: at least one node must compute",
					 (long long)o->servers, nodes, nodes == 1 ? "node" : "nodes");
	LS_TRY(ls_isa_check());
	return ls_gemm_check();
}

static ls_status init_comm(probe *p)
{
	if (p->nodes == 1)
		return LS_OK;
	LS_TRY(ls_comm_init(&p->comm, p->nodes, (double)p->o->timeout));
	p->node = ls_comm_rank(p->comm);
	return LS_OK;
}

ls_status ls_probe(const ls_probe_options *options, ls_probe_result *result)
{
	ls_probe_options own = LS_PROBE_OPTIONS_INIT;
	ls_probe_result found = { 0 };
	probe p = { .o = &own, .nodes = ls_mpi_launched(), .result = &found };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_PROBE_OPTIONS_INIT"));
	LS_TRY(check(&own, p.nodes));
	uint64_t bytes = own.bytes > 0 ? own.bytes : own.quick ? GRADIENT_BYTES_QUICK : GRADIENT_BYTES;
	p.floats = (size_t)bytes / sizeof(float);
	p.repeat = own.repeat > 0 ? (int)own.repeat : own.quick ? REPEATS_QUICK : REPEATS;
	LS_TRY(init_comm(&p));
	ls_status status = run(&p);
	ls_progress_end(p.stage.progress);
	found.node = p.node;
	found.node_count = p.nodes;
	found.bytes = p.floats * sizeof(float);
	found.repeat = p.repeat;
	if (p.comm)
		status = ls_comm_finalize(p.comm, status,
					  status == LS_EMISMATCH); /* before the exchanges whose messages it carries */
	for (int i = 0; i < p.bench_count; i++)
		ls_exchange_bench_free(p.benches[i]);
	free(p.devices_of);
	if (status != LS_OK)
		ls_probe_result_release(&found);
	else
		*result = found;
	return status;
}

void ls_probe_result_release(ls_probe_result *result)
{
	free(result->nodes);
	*result = (ls_probe_result){ 0 };
}
