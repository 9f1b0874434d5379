#include "backends/replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "backends/host_teams.h"
#include "backends/profiler.h"
#include "base/clock.h"
#include "kernels/gemm.h"

/* The devices: host threads that share the host's work, as those of cpu do. */
typedef struct devices {
	ls_host_teams *teams;
	const ls_replay_options *options;
} devices;

typedef struct replay {
	ls_executor executor;
	ls_replay_options options;
	ls_team *team;
	ls_exec_microbatch *microbatch; /* under way */
	double due;                     /* when what was begun so far ends; member 0's */
} replay;

static void sleep_until(double when)
{
	double whole = floor(when);
	struct timespec at = { .tv_sec = (time_t)whole, .tv_nsec = (long)((when - whole) * 1e9) };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* All threads complete a layer (or the loss) that takes `seconds`. */
static void pass_time(replay *r, double seconds, ls_member member)
{
	if (member.rank == 0) {
		r->due += seconds / r->options.speed / (double)r->options.profile->tiles;
		sleep_until(r->due);
	}
	ls_team_barrier(member);
}

/* Hooks take the time they take. */
static void add_since(replay *r, double start, ls_member member)
{
	if (member.rank == 0)
		r->due += ls_clock_seconds() - start;
}

static void report_span(const replay *r, const ls_profile_layer *layer, int is_backward, double start, ls_member member)
{
	if (member.rank == 0 && r->microbatch->span)
		r->microbatch->span(r->microbatch->span_context, layer->name, is_backward, start, ls_clock_seconds());
}

static void run_forward(replay *r, ls_member member)
{
	const ls_profile *p = r->options.profile;
	for (size_t i = 0; i < p->layers; i++) {
		const ls_profile_layer *layer = &p->layer[i];
		double start = ls_clock_seconds();
		for (int k = 0; r->microbatch->need && k < layer->ranges; k++)
			r->microbatch->need(r->microbatch->need_context, (size_t)layer->range[k].begin,
					    (size_t)layer->range[k].end, member);
		add_since(r, start, member);
		start = ls_clock_seconds();
		pass_time(r, layer->forward_s, member);
		report_span(r, layer, 0, start, member);
	}
}

/* Where the gradient of a layer's k-th range is written. */
static float *gradient_at(const replay *r, const ls_profile_layer *layer, int k)
{
	if (!r->microbatch->share_grads)
		return r->microbatch->grads + layer->range[k].begin;
	float *at = r->microbatch->grads;
	for (int i = 0; i < k; i++)
		at += layer->range[i].end - layer->range[i].begin;
	return at;
}

/* Joining micro-batches adds to them in place, so that each one's are written anew; that is
 * part of the layer's time. */
static void write_gradient(const replay *r, const ls_profile_layer *layer, ls_member member)
{
	for (int k = 0; k < layer->ranges; k++) {
		float *grads = gradient_at(r, layer, k);
		int64_t begin, end;
		ls_team_range(member, layer->range[k].end - layer->range[k].begin, &begin, &end);
		for (int64_t i = begin; i < end; i++)
			grads[i] = r->options.value;
	}
}

static void deliver_gradient(const replay *r, const ls_profile_layer *layer, ls_member member)
{
	for (int k = 0; r->microbatch->ready && k < layer->ranges; k++)
		r->microbatch->ready(r->microbatch->ready_context, (size_t)layer->range[k].begin,
				     (size_t)layer->range[k].end, gradient_at(r, layer, k), member);
	if (r->microbatch->share_grads) /* the next layer writes where this one's gradient is read */
		ls_team_barrier(member);
}

static void run_backward(replay *r, int last, ls_member member)
{
	const ls_profile *p = r->options.profile;
	for (size_t i = p->layers; i-- > 0;) {
		const ls_profile_layer *layer = &p->layer[i];
		double start = ls_clock_seconds();
		if (last)
			write_gradient(r, layer, member);
		pass_time(r, layer->backward_s, member);
		report_span(r, layer, 1, start, member);
		start = ls_clock_seconds();
		if (last)
			deliver_gradient(r, layer, member);
		add_since(r, start, member);
	}
}

static void run(void *context, ls_member member)
{
	replay *r = context;
	int64_t tiles = r->options.profile->tiles;

	for (int64_t tile = 0; tile < tiles; tile++) {
		run_forward(r, member);
		pass_time(r, r->options.profile->loss_s, member);
		run_backward(r, tile == tiles - 1, member);
		pass_time(r, r->options.profile->other_s, member);
	}
}

/* Thread 0 is the calling thread, and the only one that sleeps. */
static void train(ls_executor *executor, ls_exec_microbatch *microbatch)
{
	replay *r = (replay *)executor;
	int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	r->microbatch = microbatch;
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); /* or the kernel adds 50 us to each layer */
	r->due = ls_clock_seconds();
	ls_team_run(r->team, run, r);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
	microbatch->loss = 0;
	microbatch->correct = 0;
}

static ls_status open_devices(void **out, const ls_devices_options *options)
{
	devices *d = calloc(1, sizeof(*d));

	if (!d)
		return ls_fail(LS_EMEMORY, "no memory for a replay");
	d->options = options->backend_options;
	ls_status status = ls_host_teams_new(&d->teams, options);
	if (status != LS_OK) {
		free(d);
		return status;
	}
	*out = d;
	return LS_OK;
}

static void close_devices(void *self)
{
	devices *d = self;
	ls_host_teams_free(d->teams);
	free(d);
}

static void bind(void *self, int device)
{
	ls_host_teams_bind(((devices *)self)->teams, device);
}

static void host_run(void *self, int device, ls_team_work work, void *context)
{
	ls_host_teams_run(((devices *)self)->teams, device, work, context);
}

static void describe(const void *self, char *text, size_t size)
{
	ls_host_teams_describe(((const devices *)self)->teams, text, size);
}

static ls_status load(ls_executor **out, void *self, int device, const ls_graph *graph, const ls_load_options *options)
{
	const devices *d = self;
	int64_t microbatch = options->sizes[0], recorded = d->options->profile->batch;
	(void)graph; /* ls_replay_fits() */

	if (microbatch != recorded)
		return ls_fail(LS_EINVALID,
			       "a micro-batch of %" PRId64 " samples cannot be replayed from a profile of %" PRId64
			       "; record one with options.batch_per_device %" PRId64,
			       microbatch, recorded, microbatch);
	replay *r = calloc(1, sizeof(*r));
	if (!r)
		return ls_fail(LS_EMEMORY, "no memory for a replay");
	*r = (replay){ .executor = { &ls_backend_replay }, .options = *d->options, .team = d->teams->team[device] };
	*out = &r->executor;
	return LS_OK;
}

static void unload(ls_executor *executor)
{
	free(executor);
}

/* It sleeps, and takes no memory for it. */
static ls_status plan(const ls_graph *graph, int64_t n, int threads, int inference, size_t *bytes)
{
	(void)graph, (void)n, (void)threads, (void)inference;
	*bytes = 0;
	return LS_OK;
}

/* No layer is computed, so no parameter is read. */
static void set_params(ls_executor *executor, const float *params, const float *buffers)
{
	(void)executor, (void)params, (void)buffers;
}

const ls_backend ls_backend_replay = {
	.name = "replay",
	.help = "sleeps through a recorded profile instead of computing; communication and updates are real",
	.check = ls_gemm_check, /* it has no products; a mistyped LOCKSTEP_KERNELS is reported all the same */
	.plan = plan,
	.shared_grads = ls_backend_shared_grads,
	.open = open_devices,
	.close = close_devices,
	.bind = bind,
	.host_run = host_run,
	.describe = describe,
	.load = load,
	.unload = unload,
	.set_params = set_params,
	.train = train,
};

static int same_layer(const ls_profile_layer *a, const ls_profile_layer *b)
{
	int same = a->ranges == b->ranges;
	for (int k = 0; same && k < a->ranges; k++)
		same = a->range[k].begin == b->range[k].begin && a->range[k].end == b->range[k].end;
	return same;
}

ls_status ls_replay_fits(const ls_profile *p, const ls_graph *graph, const char *label)
{
	static const char again[] = "record it again with this version";

	if (p->layers != (size_t)graph->node_count)
		return ls_fail(LS_EMISMATCH, "%s: layers has %zu entries, model %s has %d here; %s", label, p->layers,
			       p->model, graph->node_count, again);
	if ((size_t)p->reachable != graph->params.reachable)
		return ls_fail(LS_EMISMATCH, "%s: reachable_floats is %" PRId64 ", model %s has %zu here; %s", label,
			       p->reachable, p->model, graph->params.reachable, again);
	for (int i = 0; i < graph->node_count; i++) {
		ls_profile_layer here = { 0 };
		ls_profiler_ranges(graph, i, &here);
		if (strcmp(p->layer[i].name, graph->nodes[i].name) != 0 || !same_layer(&p->layer[i], &here))
			return ls_fail(
				LS_EMISMATCH,
				"%s: layers[%d], '%s', is not what model %s has here ('%s', or other parameters); %s",
				label, i, p->layer[i].name, p->model, graph->nodes[i].name, again);
	}
	return LS_OK;
}
