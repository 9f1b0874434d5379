#include "run/tracing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "comm/collectives.h"
#include "metrics/trace.h"

struct ls_tracing {
	const ls_layout *layout;
	const char *run;
	uint64_t steps, recorded;
	int64_t step; /* under way, of devices; the exchange may still be at the one before */
	double step_begin;
	int devices, threads;
	atomic_int is_recording;
	ls_trace *trace;
};

/* Spans a lane keeps at least and at most: 4 MB. */
enum { SPANS_MIN = 1024, SPANS_MAX = 65536 };

static const ls_trace_kind step_kind = { .category = "step" };
static const ls_trace_kind layer_kinds[2] = { { .category = "forward" }, { .category = "backward" } };
static const ls_trace_kind early_kind = { .category = "update" }; /* one device alone has no buckets */
static const struct {
	const char *name;
	ls_trace_kind kind;
} events[] = {
	[LS_EVENT_REDUCE_SCATTER] = { "reduce-scatter",
				      { .category = "reduce-scatter", .arg0 = "bucket", .overlaps = 1 } },
	[LS_EVENT_COMBINE] = { "combine", { .category = "combine", .arg0 = "bucket" } },
	[LS_EVENT_UPDATE] = { "update", { .category = "update", .arg0 = "bucket" } },
	[LS_EVENT_ALL_GATHER] = { "all-gather", { .category = "all-gather", .arg0 = "bucket", .overlaps = 1 } },
	[LS_EVENT_WAIT] = { "wait", { .category = "wait", .arg0 = "bucket" } },
};

/* Lanes. Participants are the threads of devices, the communication thread, and the thread that waits for the end of a
 * step. */
static int device_lane(int device)
{
	return 1 + device;
}

static int participant_lane(const ls_tracing *t, int participant)
{
	return 1 + t->devices + participant;
}

static int reduce_scatter_lane(const ls_tracing *t)
{
	return participant_lane(t, t->devices * t->threads + 2);
}

static int all_gather_lane(const ls_tracing *t)
{
	return reduce_scatter_lane(t) + 1;
}

static int lane_count(const ls_layout *layout)
{
	return 1 + layout->devices + layout->devices * layout->threads + 2 + 2;
}

/* What a lane can come to have: a device's layers, twice a shard of a micro-batch, or all blocks of the sums. */
static size_t lane_spans(uint64_t steps, const ls_node_trainer_options *o)
{
	double shards = (double)(o->microbatch + LS_TILE - 1) / LS_TILE * (double)o->microbatches;
	double layers = 3.0 * o->graph->node_count * shards;
	double blocks = 3.0 * ((double)o->graph->params.reachable / LS_NORM_BLOCK + 64);
	double spans = (double)steps * (layers > blocks ? layers : blocks);

	return spans < SPANS_MIN ? SPANS_MIN : spans > SPANS_MAX ? SPANS_MAX : (size_t)spans;
}

size_t ls_tracing_bytes(const ls_layout *layout, uint64_t steps, const ls_node_trainer_options *trainer)
{
	return (size_t)lane_count(layout) * lane_spans(steps, trainer) * 64;
}

static void name_sums(const ls_tracing *t, int participant)
{
	char name[64];
	int device = participant / t->threads, thread = participant % t->threads;

	if (t->threads > 1)
		snprintf(name, sizeof(name), "sums, device %d thread %d", device, thread);
	else
		snprintf(name, sizeof(name), "sums, device %d", device);
	ls_trace_name_lane(t->trace, participant_lane(t, participant), name);
}

static void name_lanes(const ls_tracing *t)
{
	int members = t->devices * t->threads;
	char name[64];

	ls_trace_name_lane(t->trace, 0, "steps");
	for (int i = 0; i < t->devices; i++) {
		snprintf(name, sizeof(name), "device %d", i);
		ls_trace_name_lane(t->trace, device_lane(i), name);
	}
	for (int i = 0; i < members; i++)
		name_sums(t, i);
	if (t->layout->nodes == 1)
		return;
	ls_trace_name_lane(t->trace, participant_lane(t, members), "sums, communication thread");
	ls_trace_name_lane(t->trace, participant_lane(t, members + 1), "sums, between steps");
	ls_trace_name_lane(t->trace, reduce_scatter_lane(t), "reduce-scatter");
	ls_trace_name_lane(t->trace, all_gather_lane(t), "all-gather");
}

/* By the device's first thread. */
static void record_layer(void *context, int device, const char *node, int is_backward, double begin_s, double end_s)
{
	ls_tracing *t = context;
	if (atomic_load_explicit(&t->is_recording, memory_order_relaxed))
		ls_trace_span(t->trace, device_lane(device), node, &layer_kinds[is_backward != 0], begin_s, end_s,
			      t->step, 0, 0);
}

/* A device's first thread waits between its layers; all messages are the communication thread's. */
static int event_lane(const ls_tracing *t, ls_exchange_event event, int participant)
{
	if (event == LS_EVENT_REDUCE_SCATTER)
		return reduce_scatter_lane(t);
	if (event == LS_EVENT_ALL_GATHER)
		return all_gather_lane(t);
	if (event == LS_EVENT_WAIT && participant < t->devices * t->threads && participant % t->threads == 0)
		return device_lane(participant / t->threads);
	return participant_lane(t, participant);
}

static void record_act(void *context, ls_exchange_event event, int participant, int64_t number, double begin_s,
		       double end_s)
{
	ls_tracing *t = context;
	if (atomic_load_explicit(&t->is_recording, memory_order_relaxed))
		ls_trace_span(t->trace, event_lane(t, event, participant), events[event].name,
			      number < 0 ? &early_kind : &events[event].kind, begin_s, end_s, -1, number, 0);
}

static void own_host(const ls_layout *layout, char *name, size_t size)
{
	if (layout->comm)
		snprintf(name, size, "%s", ls_comm_host(layout->comm, layout->node));
	else if (gethostname(name, size) != 0)
		snprintf(name, size, "this host");
	name[size - 1] = '\0';
}

ls_status ls_tracing_new(ls_tracing **out, const ls_layout *layout, const char *run, uint64_t steps,
			 ls_node_trainer_options *trainer)
{
	char host[256];
	ls_tracing *t = calloc(1, sizeof(*t));

	if (!t)
		return ls_fail(LS_EMEMORY, "no memory for a timeline");
	*t = (ls_tracing){
		.layout = layout, .run = run, .steps = steps, .devices = layout->devices, .threads = layout->threads
	};
	own_host(layout, host, sizeof(host));
	ls_status status = ls_trace_new(&t->trace, layout->node, host, lane_count(layout), lane_spans(steps, trainer));
	if (status != LS_OK) {
		free(t);
		return status;
	}
	name_lanes(t);
	atomic_store(&t->is_recording, 1);
	trainer->span = record_layer;
	trainer->act = record_act;
	trainer->trace_context = t;
	*out = t;
	return LS_OK;
}

void ls_tracing_free(ls_tracing *t)
{
	if (!t)
		return;
	ls_trace_free(t->trace);
	free(t);
}

static int is_recording(const ls_tracing *t)
{
	return t && atomic_load_explicit(&t->is_recording, memory_order_relaxed);
}

void ls_tracing_begin_step(ls_tracing *t, uint64_t step)
{
	if (!is_recording(t))
		return;
	t->step = (int64_t)step;
	t->step_begin = ls_clock_seconds();
}

void ls_tracing_end_step(ls_tracing *t)
{
	if (!is_recording(t))
		return;
	ls_trace_span(t->trace, 0, "step", &step_kind, t->step_begin, ls_clock_seconds(), t->step, 0, 0);
	t->recorded++;
}

int ls_tracing_is_due(const ls_tracing *t, int is_end)
{
	return is_recording(t) && t->recorded > 0 && (is_end || t->recorded >= t->steps);
}

/* How often a peer's clock is read; the shortest round trip is the most exact. */
enum { QUESTIONS = 12 };

/* The first node's clock minus node `peer`'s. The answer was given some time between question and answer's arrival;
 * the middle is wrong by half the shortest round trip at most. Called by these two. */
static ls_status measure_offset(ls_comm *comm, int peer, double *offset)
{
	static const char what[] = "comparison of clocks";
	int rank = ls_comm_rank(comm);
	double shortest = 1e9, theirs = 0;

	for (int i = 0; i < QUESTIONS; i++) {
		double asked = ls_clock_seconds();
		LS_TRY(ls_comm_sendrecv(comm, 0, peer, &asked, &theirs, sizeof(asked), what));
		if (rank == peer)
			theirs = ls_clock_seconds();
		LS_TRY(ls_comm_sendrecv(comm, peer, 0, &theirs, &theirs, sizeof(theirs), what));
		double answered = ls_clock_seconds();
		if (rank == 0 && answered - asked < shortest) {
			shortest = answered - asked;
			*offset = asked + shortest / 2 - theirs;
		}
	}
	return ls_comm_sendrecv(comm, 0, peer, offset, offset, sizeof(*offset), what);
}

static ls_status align_clocks(ls_tracing *t)
{
	const ls_layout *l = t->layout;

	for (int peer = 1; peer < l->nodes; peer++) {
		double offset = 0;
		if (l->node != 0 && l->node != peer)
			continue;
		LS_TRY(measure_offset(l->comm, peer, &offset));
		if (l->node == peer)
			ls_trace_set_offset(t->trace, offset);
	}
	return LS_OK;
}

/* All nodes' packs at the first, which frees them; the own one is packs[node]. */
static ls_status bring_packs(const ls_layout *l, void **packs, const size_t *sizes)
{
	for (int i = 1; i < l->nodes; i++) {
		if (l->node == 0) {
			packs[i] = malloc(sizes[i] > 0 ? sizes[i] : 1);
			if (!packs[i])
				return ls_fail(LS_EMEMORY, "no memory for node %d's timeline of %zu bytes", i,
					       sizes[i]);
		}
		LS_TRY(ls_comm_sendrecv(l->comm, i, 0, packs[i], packs[i], sizes[i], "timeline"));
	}
	return LS_OK;
}

static ls_status write_file(const ls_tracing *t, void **packs, const size_t *sizes)
{
	size_t nodes = (size_t)t->layout->nodes;
	char path[4096];
	ls_trace_packed *all = calloc(nodes, sizeof(*all));

	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the timelines of %zu nodes", nodes);
	for (size_t i = 0; i < nodes; i++)
		all[i] = (ls_trace_packed){ .bytes = packs[i], .size = sizes[i] };
	ls_status status = ls_path_join(path, sizeof(path), t->run, "trace.json");
	if (status == LS_OK)
		status = ls_trace_write(path, all, nodes);
	free(all);
	if (status == LS_OK)
		ls_log_note("timeline of %llu step%s in %s%s", (unsigned long long)t->recorded,
			    ls_plural(t->recorded, "s"), path,
			    ls_trace_dropped(t->trace) > 0 ? "; there were too many spans, the oldest are left out"
							   : "");
	return status;
}

static ls_status gather_and_write(ls_tracing *t, void **packs, size_t *sizes)
{
	const ls_layout *l = t->layout;
	size_t size = 0;

	LS_TRY(ls_trace_pack(t->trace, &packs[l->node], &size));
	LS_TRY(ls_comm_gather(l->comm, 0, &size, sizeof(size), sizes, "size of timelines"));
	sizes[l->node] = size;
	LS_TRY(bring_packs(l, packs, sizes));
	return l->node == 0 ? write_file(t, packs, sizes) : LS_OK;
}

ls_status ls_tracing_write(ls_tracing *t)
{
	int nodes = t->layout->nodes;
	void **packs = calloc((size_t)nodes, sizeof(*packs));
	size_t *sizes = calloc((size_t)nodes, sizeof(*sizes));
	ls_status status = LS_OK;

	if (!packs || !sizes)
		status = ls_fail(LS_EMEMORY, "no memory for the timelines of %d nodes", nodes);
	if (status == LS_OK)
		status = align_clocks(t); /* meanwhile the last messages come to their end */
	atomic_store(&t->is_recording, 0);
	if (status == LS_OK)
		status = gather_and_write(t, packs, sizes);
	for (int i = 0; packs && i < nodes; i++)
		free(packs[i]);
	free(sizes);
	free(packs);
	return status;
}
