#include "tools/forecast/timeline.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
	const ls_timeline_options *o;
	ls_timeline timeline;
	size_t room;
	size_t *remaining; /* (buckets) floats that are not ready yet */
	int given;         /* a bucket was handed over */
	int failed;
} writer;

static void add(writer *w, ls_action action)
{
	ls_timeline *s = &w->timeline;

	if (action.kind == LS_DO_RUN && s->count > 0 && s->action[s->count - 1].kind == LS_DO_RUN) {
		s->action[s->count - 1].seconds += action.seconds;
		return;
	}
	if (s->count == w->room) {
		size_t room = w->room > 0 ? 2 * w->room : 256;
		ls_action *more = realloc(s->action, room * sizeof(*more));
		if (!more) {
			w->failed = 1;
			return;
		}
		s->action = more;
		w->room = room;
	}
	s->action[s->count++] = action;
}

static void compute(writer *w, double seconds)
{
	if (seconds > 0)
		add(w, (ls_action){ .kind = LS_DO_RUN, .seconds = seconds });
	w->timeline.compute_s += seconds;
}

static void need(writer *w, const ls_profile_layer *layer)
{
	const ls_partition *plan = w->o->plan;
	for (int k = 0; k < layer->ranges; k++)
		add(w, (ls_action){ .kind = LS_DO_NEED,
				    .first = ls_partition_bucket_at(plan, (size_t)layer->range[k].begin),
				    .last = ls_partition_bucket_at(plan, (size_t)layer->range[k].end - 1) });
}

static void give(writer *w, int bucket)
{
	const ls_bucket *b = &w->o->plan->bucket[bucket];
	double seconds = w->o->give_s_per_float * (double)(b->end - b->begin);

	if (seconds > 0)
		add(w, (ls_action){ .kind = LS_DO_RUN, .seconds = seconds });
	add(w, (ls_action){ .kind = LS_DO_GIVE, .first = bucket });
}

/* Nothing of a step is sent before the statistics of the previous step have arrived (exchange/outbox.c). */
static void give_in_turn(writer *w, int bucket)
{
	int statistics = w->o->plan->buckets - 1;

	if (!w->given && !w->o->alone)
		add(w, (ls_action){ .kind = LS_DO_NEED, .first = statistics, .last = statistics });
	w->given = 1;
	give(w, bucket);
}

/* A layer's gradient is final, and with it perhaps the buckets that contain it. */
static void ready(writer *w, const ls_profile_layer *layer)
{
	const ls_partition *plan = w->o->plan;

	for (int k = 0; k < layer->ranges; k++) {
		size_t begin = (size_t)layer->range[k].begin,
		       end = ((size_t)layer->range[k].end + LS_PROFILE_LINE - 1) / LS_PROFILE_LINE * LS_PROFILE_LINE;
		end = end < plan->statistics_begin ? end : plan->statistics_begin;
		for (int b = ls_partition_bucket_at(plan, begin); begin < end; b++) {
			size_t last = plan->bucket[b].end < end ? plan->bucket[b].end : end;
			w->remaining[b] -= last - begin;
			if (w->remaining[b] == 0 && !w->o->after)
				give_in_turn(w, b);
			begin = last;
		}
	}
}

/* One forward and backward pass with `part` of a micro-batch. */
static void write_pass(writer *w, double part, int is_first, int is_last)
{
	const ls_profile *p = w->o->profile;

	for (size_t i = 0; i < p->layers; i++) {
		if (is_first && !w->o->alone && !w->o->after)
			need(w, &p->layer[i]);
		compute(w, part * p->layer[i].forward_s);
	}
	compute(w, part * p->loss_s);
	for (size_t i = p->layers; i-- > 0;) {
		compute(w, part * p->layer[i].backward_s);
		if (is_last)
			ready(w, &p->layer[i]);
	}
}

static void write_step(writer *w)
{
	const ls_timeline_options *o = w->o;
	int64_t rounds = o->microbatches * o->profile->tiles;
	int buckets = o->plan->buckets;

	if (o->after && !o->alone)
		add(w, (ls_action){ .kind = LS_DO_NEED, .first = 0, .last = buckets - 1 });
	for (int64_t r = 0; r < rounds; r++)
		write_pass(w, 1.0 / (double)o->profile->tiles, r == 0, r == rounds - 1);
	compute(w, o->profile->other_s * (double)o->microbatches);
	for (int b = buckets - 2; o->after && b >= 0; b--) {
		give(w, b);
		if (!o->alone && b + 1 < buckets - 1)
			add(w, (ls_action){ .kind = LS_DO_NEED, .first = b + 1, .last = b + 1, .of_this_step = 1 });
	}
	if (o->give_s > 0)
		add(w, (ls_action){ .kind = LS_DO_RUN, .seconds = o->give_s });
	give(w, buckets - 1);
}

ls_status ls_timeline_make(ls_timeline *out, const ls_timeline_options *options)
{
	writer w = { .o = options };
	int buckets = options->plan->buckets;

	w.remaining = calloc((size_t)buckets, sizeof(*w.remaining));
	for (int b = 0; w.remaining && b < buckets; b++)
		w.remaining[b] = options->plan->bucket[b].end - options->plan->bucket[b].begin;
	if (w.remaining)
		write_step(&w);
	int failed = w.failed || !w.remaining;
	free(w.remaining);
	if (failed) {
		ls_timeline_release(&w.timeline);
		return ls_fail(LS_EMEMORY, "no memory for the actions of a step");
	}
	*out = w.timeline;
	return LS_OK;
}

void ls_timeline_release(ls_timeline *timeline)
{
	free(timeline->action);
	*timeline = (ls_timeline){ 0 };
}
