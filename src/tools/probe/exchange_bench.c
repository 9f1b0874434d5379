#include "tools/probe/exchange_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/memory.h"
#include "base/pin.h"
#include "comm/collectives.h"

/* As in training: floats of a block, of a bucket between nodes and inside one. */
enum { BLOCK = 16384, BUCKET_NODES = 256 * 1024, BUCKET_ALONE = 256 * 1024, STATISTICS = 16 };

struct ls_exchange_bench {
	ls_exchange_bench_options o;
	int node, nodes, devices;
	int microbatches;
	int *node_of, *device_of; /* (micro-batches) */
	float *params, *master;   /* (floats) master is params, unless the codec sends changes */
	float state[STATISTICS];
	ls_exchange *exchange;
	ls_pin_plan pin;
	ls_team *team; /* one thread per device */
	uint64_t step;
};

/* The least an update can cost: stores that bypass the caches, because nothing reads the values. */
static void copy(float *to, const float *from, size_t count)
{
	size_t i = 0;
#if defined(__SSE2__)
	for (; (uintptr_t)(to + i) % 16 != 0 && i < count; i++)
		to[i] = from[i];
	for (; i + 4 <= count; i += 4)
		_mm_stream_ps(to + i, _mm_loadu_ps(from + i));
	_mm_sfence();
#endif
	memcpy(to + i, from + i, (count - i) * sizeof(float));
}

static void update(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	ls_exchange_bench *r = context;
	size_t statistics = ls_exchange_statistics_begin(r->exchange);
	float *to = begin < statistics ? r->master + begin : r->state + (begin - statistics);
	size_t limit = begin < statistics ? r->o.floats : statistics + STATISTICS;

	(void)participant;
	copy(to, sums, (end < limit ? end : limit) - begin);
}

/* One micro-batch per device, in node order. */
static ls_status assign_microbatches(ls_exchange_bench *r)
{
	int workers = r->nodes - r->o.servers, at = 0;

	for (int n = 0; n < workers; n++)
		r->microbatches += r->o.devices_of[n];
	r->devices = r->node < workers ? r->o.devices_of[r->node] : 0;
	r->node_of = calloc((size_t)r->microbatches, sizeof(int));
	r->device_of = calloc((size_t)r->microbatches, sizeof(int));
	if (!r->node_of || !r->device_of)
		return ls_fail(LS_EMEMORY, "no memory to assign %d micro-batches", r->microbatches);
	for (int n = 0; n < workers; n++)
		for (int d = 0; d < r->o.devices_of[n]; d++) {
			r->node_of[at] = n;
			r->device_of[at++] = d;
		}
	return LS_OK;
}

static ls_status make_exchange(ls_exchange_bench *r)
{
	const ls_strategy *strategy = r->o.servers > 0 ? &ls_strategy_ps : &ls_strategy_allreduce;
	size_t usual = r->o.comm ? BUCKET_NODES : BUCKET_ALONE;
	ls_exchange_options x = { .comm = r->o.comm,
				  .servers = r->o.servers,
				  .devices = r->devices,
				  .threads = 1,
				  .reachable = r->o.floats,
				  .statistics = STATISTICS,
				  .block = BLOCK,
				  .bucket = r->o.bucket > 0 ? r->o.bucket : usual,
				  .microbatches = r->microbatches,
				  .strategy = strategy,
				  .codec = r->o.codec,
				  .update = update,
				  .context = r };

	LS_TRY(ls_floats_new(&r->params, r->o.floats, "parameters"));
	r->master = r->params;
	if (r->o.comm && ls_strategy_needs_master(strategy, r->o.codec))
		LS_TRY(ls_floats_new(&r->master, r->o.floats, "exact parameters"));
	x.params = r->params;
	x.master = r->master;
	x.state = r->state;
	return ls_exchange_new(&r->exchange, &x);
}

static void pin_rank(void *context, int rank)
{
	ls_exchange_bench *r = context;
	ls_pin_self(&r->pin, rank, 0);
}

static ls_status make_team(ls_exchange_bench *r)
{
	ls_team_options team = { .threads = r->devices, .begin = pin_rank, .context = r };
	if (r->devices == 0)
		return LS_OK;
	LS_TRY(ls_pin_plan_init(&r->pin, r->devices, 1, LS_PIN_AUTO));
	return ls_team_new_with(&r->team, &team);
}

ls_status ls_exchange_bench_new(ls_exchange_bench **out, const ls_exchange_bench_options *options)
{
	ls_exchange_bench *r = calloc(1, sizeof(*r));
	if (!r)
		return ls_fail(LS_EMEMORY, "no memory to measure an exchange");
	r->o = *options;
	r->nodes = options->comm ? ls_comm_size(options->comm) : 1;
	r->node = options->comm ? ls_comm_rank(options->comm) : 0;
	ls_status status = assign_microbatches(r);
	if (status == LS_OK)
		status = make_team(r);
	if (status == LS_OK)
		status = make_exchange(r); /* last: from here on the communication thread uses it */
	r->o.devices_of = NULL;
	if (status != LS_OK) {
		ls_exchange_bench_free(r);
		return status;
	}
	*out = r;
	return LS_OK;
}

void ls_exchange_bench_free(ls_exchange_bench *r)
{
	if (!r)
		return;
	ls_team_free(r->team);
	ls_pin_plan_release(&r->pin);
	ls_exchange_free(r->exchange);
	if (r->master != r->params)
		ls_floats_free(r->master, r->o.floats);
	ls_floats_free(r->params, r->o.floats);
	free(r->device_of);
	free(r->node_of);
	free(r);
}

/* Each device's thread rewrites its gradient in every step, as a backward pass would: the exchange sums in place. */
static void fill(void *context, ls_member member)
{
	ls_exchange_bench *r = context;
	float *sums = ls_exchange_slot(r->exchange, member.rank, 0);
	for (size_t i = 0; i < r->o.floats; i++)
		sums[i] = 1;
}

static void hand_over(void *context, ls_member member)
{
	ls_exchange_bench *r = context;
	size_t statistics = ls_exchange_statistics_begin(r->exchange);
	ls_member alone = { .size = 1 };

	ls_exchange_ready(r->exchange, member.rank, 0, 0, r->o.floats, alone);
	memset(ls_exchange_statistics(r->exchange, member.rank, 0), 0, STATISTICS * sizeof(float));
	ls_exchange_ready(r->exchange, member.rank, 0, statistics, statistics + STATISTICS, alone);
	ls_exchange_finish(r->exchange, member.rank, alone);
}

ls_status ls_exchange_bench_step(ls_exchange_bench *r, double *seconds)
{
	ls_exchange_assignment assign = {
		.step = ++r->step, .microbatches = r->microbatches, .node = r->node_of, .device = r->device_of
	};

	ls_pin_self(&r->pin, 0, 0);
	LS_TRY(ls_comm_barrier(r->o.comm, "beginning of a probe's step"));
	ls_exchange_begin(r->exchange, &assign);
	if (r->team)
		ls_team_run(r->team, fill, r);
	double start = ls_clock_seconds();
	if (r->team)
		ls_team_run(r->team, hand_over, r);
	LS_TRY(ls_exchange_await(r->exchange, assign.step));
	*seconds = ls_clock_seconds() - start;
	return LS_OK;
}

ls_status ls_exchange_bench_check(const ls_exchange_bench *r)
{
	double allowed = r->o.codec->exact ? 0 : r->microbatches / 128.0;

	for (size_t i = 0; r->team && i < r->o.floats; i++)
		if (!(fabs((double)r->params[i] - r->microbatches) <= allowed))
			return ls_fail(LS_ENUMERIC, "the exchange has summed %d ones to %g (float %zu of %zu)",
				       r->microbatches, (double)r->params[i], i, r->o.floats);
	return LS_OK;
}
