#include "backends/replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "backends/profiler.h"
#include "base/clock.h"

typedef struct replay {
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

/* All members are done with a layer (or the loss) of so many seconds. */
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

static void tell_span(const replay *r, const ls_profile_layer *layer, int is_backward, double start, ls_member member)
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
		tell_span(r, layer, 0, start, member);
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

/* Joining micro-batches adds to them in place, so that each one's are written anew; that is part of the layer's time.
 * */
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

static void give_gradient(const replay *r, const ls_profile_layer *layer, ls_member member)
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
		tell_span(r, layer, 1, start, member);
		start = ls_clock_seconds();
		if (last)
			give_gradient(r, layer, member);
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

/* Member 0 is the calling thread, and the only one that sleeps. */
static void train(void *self, ls_exec_microbatch *microbatch)
{
	replay *r = self;
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

ls_status ls_replay_make(void *context, ls_team *team, int64_t microbatch, ls_work *out)
{
	static const ls_work_kind kind = { "replay", train, free };
	const ls_replay_options *options = context;
	replay *r = calloc(1, sizeof(*r));

	if (!r)
		return ls_fail(LS_EMEMORY, "no memory for a replay");
	if (microbatch != options->profile->batch) {
		free(r);
		return ls_fail(LS_EINVALID,
			       "a micro-batch of %" PRId64 " samples cannot be replayed from a profile of %" PRId64
			       "; record one with --batch %" PRId64,
			       microbatch, options->profile->batch, microbatch);
	}
	r->options = *options;
	r->team = team;
	*out = (ls_work){ .kind = &kind, .self = r };
	return LS_OK;
}

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
	if ((size_t)p->live != graph->params.live)
		return ls_fail(LS_EMISMATCH, "%s: live_floats is %" PRId64 ", model %s has %zu here; %s", label,
			       p->live, p->model, graph->params.live, again);
	for (int i = 0; i < graph->node_count; i++) {
		ls_profile_layer here = { 0 };
		ls_recorder_ranges(graph, i, &here);
		if (strcmp(p->layer[i].name, graph->nodes[i].name) != 0 || !same_layer(&p->layer[i], &here))
			return ls_fail(LS_EMISMATCH,
				       "%s: layers[%d], '%s', is not what model %s has here ('%s', or other parameters "
				       "of it); %s",
				       label, i, p->layer[i].name, p->model, graph->nodes[i].name, again);
	}
	return LS_OK;
}
