#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exchange/inside.h"

/* Whoever sleeps looks again after so long, for news that came between a look and the nap. */
enum { NAP_NS = 20 * 1000 * 1000 };

const ls_partition *ls_exchange_partition(const ls_exchange *x)
{
	return &x->plan;
}

size_t ls_exchange_extra_begin(const ls_exchange *x)
{
	return x->plan.extra_begin;
}

int ls_exchange_owner_index(const ls_exchange *x, int node)
{
	if (x->o.library_sum)
		return node == x->node ? 0 : -1;
	return node >= x->first_owner ? node - x->first_owner : -1;
}

/* Waiting */

/* Something changed: whoever sleeps looks again. The communication thread, too, for there may be work. */
void ls_exchange_notify(ls_exchange *x)
{
	atomic_fetch_add(&x->news, 1);
	if (atomic_load(&x->sleepers) > 0) {
		pthread_mutex_lock(&x->event_lock);
		pthread_cond_broadcast(&x->event);
		pthread_mutex_unlock(&x->event_lock);
	}
	if (x->o.comm)
		ls_comm_wake(x->o.comm);
}

static int has_failed(const ls_exchange *x)
{
	return x->o.comm && ls_comm_has_failed(x->o.comm);
}

/* What is waited for: a range of buckets at a step's values, or the node's gathering. */
typedef struct goal {
	int first, last;
	uint64_t steps; /* of new values */
	int gathered, measured;
} goal;

static int is_met(ls_exchange *x, const goal *g)
{
	if (x->stale)
		return ls_stale_is_served(x, g->steps);
	for (int b = g->first; b <= g->last; b++)
		for (int o = 0; o < x->plan.owners; o++)
			if (x->bucket[b].comes[o] &&
			    atomic_load_explicit(&x->bucket[b].arrivals[o], memory_order_acquire) < g->steps)
				return 0;
	if (g->measured && atomic_load(&x->norm_steps) < g->steps)
		return 0;
	return !g->gathered || atomic_load(&x->gathered) == x->plan.buckets;
}

/* Unless there were news since number `seen` of them. */
static void nap(ls_exchange *x, uint64_t seen)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NAP_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&x->event_lock);
	atomic_fetch_add(&x->sleepers, 1);
	if (atomic_load(&x->news) == seen)
		pthread_cond_timedwait(&x->event, &x->event_lock, &until);
	atomic_fetch_sub(&x->sleepers, 1);
	pthread_mutex_unlock(&x->event_lock);
}

static int help(ls_exchange *x, int participant)
{
	int bucket, unit;
	if (participant < x->members && ls_worklist_take_any(&x->gather, participant, &bucket, &unit)) {
		ls_exchange_run_gather(x, bucket, unit, participant);
		if (ls_worklist_done(&x->gather, bucket))
			ls_exchange_push(x, bucket);
		return 1;
	}
	return ls_exchange_help(x, participant);
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Until the goal is met, doing whatever there is to do. */
static void wait_for(ls_exchange *x, const goal *g, int participant)
{
	uint64_t seen = atomic_load(&x->news);
	for (int spin = 0; !is_met(x, g) && !has_failed(x); spin++) {
		if (help(x, participant))
			spin = 0;
		else if (spin < x->spins)
			relax();
		else
			nap(x, seen);
		seen = atomic_load(&x->news); /* before looking again */
	}
}

/* The same as exposed communication; returns the seconds. */
static double wait_exposed(ls_exchange *x, const goal *g, int participant)
{
	if (is_met(x, g))
		return 0;
	double start = ls_clock_seconds();
	wait_for(x, g, participant);
	double now = ls_clock_seconds();
	x->part[participant].need_s += now - start;
	if (x->o.act)
		x->o.act(x->o.context, LS_ACT_WAIT, participant, g->last, start, now);
	return now - start;
}

/* A step */

static void assign_round(ls_exchange *x, const ls_exchange_assignment *assign)
{
	int parity = (int)(assign->step & 1);
	ls_round *round = &x->rounds[parity];
	size_t bytes = (size_t)assign->microbatches * sizeof(int);

	assert(assign->microbatches >= 1 && assign->microbatches <= x->o.microbatches);
	if (round->microbatches == assign->microbatches && memcmp(x->node_of[parity], assign->node, bytes) == 0 &&
	    memcmp(x->device_of[parity], assign->device, bytes) == 0) {
		round->step = assign->step;
		return;
	}
	memcpy(x->node_of[parity], assign->node, bytes);
	memcpy(x->device_of[parity], assign->device, bytes);
	ls_round_assign(round, assign->step, assign->microbatches, assign->node, assign->device);
	ls_round_room room = ls_round_room_of(round);
	assert(room.stores <= x->slots && room.outputs <= x->outputs);
	assert(ls_exchange_is_flat(x) || (room.others <= x->rows && round->combine.inputs <= x->inputs));
}

/* The extra floats of the last step have been seen to: their place may be written again, and their owners have posted
 * them to everybody. */
static goal extra_goal(const ls_exchange *x)
{
	int last = x->plan.buckets - 1;
	return (goal){ .first = last, .last = last, .steps = x->step - x->first };
}

/* A node without micro-batches has nothing to push; but a library's sum, and a server that counts rounds, want its
 * zeros. They take the place of the last step's sums, which have left once their answers are here. */
static void push_nothing(ls_exchange *x)
{
	const ls_round *round = &x->rounds[x->step & 1];
	goal answered = { .last = x->plan.buckets - 1, .steps = x->step - x->first };

	if (x->o.staleness > 0 && x->node < x->workers)
		wait_for(x, &answered, x->members + 1);
	for (int b = x->plan.buckets - 1; ls_exchange_is_flat(x) && x->node < x->workers && b >= 0; b--) {
		const ls_bucket *cut = &x->plan.bucket[b];
		memset(ls_exchange_output(x, round, b, 0, cut->begin), 0,
		       (cut->end - cut->begin) * (ls_exchange_is_bf16(x, b) ? sizeof(uint16_t) : sizeof(float)));
		ls_exchange_push(x, b);
	}
	atomic_store(&x->gathered, x->plan.buckets);
}

/* Two steps are kept apart, no more: the one before the last must be complete, also on a node that has had no
 * micro-batches and so waited for nothing. */
static void leave_room(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->plan.buckets - 1, .measured = x->o.rounds > 0 && x->nodes > 1 };

	if (x->begun && step >= x->first + 1) /* library sums come in one order everywhere: no two steps at once */
		g.steps = step - x->first - !x->o.library_sum;
	wait_for(x, &g, x->nodes > 1 ? x->members + 1 : 0);
}

void ls_exchange_begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	const ls_round *round = &x->rounds[assign->step & 1];

	leave_room(x, assign->step);
	pthread_mutex_lock(&x->lock);
	if (!x->begun) {
		x->first = x->norm_step = assign->step;
		for (int b = 0; b < x->plan.buckets; b++)
			x->bucket[b].shard_step = assign->step;
	}
	x->begun = 1;
	x->step = assign->step;
	x->scale = assign->scale;
	assign_round(x, assign);
	for (int b = 0; b < x->plan.buckets; b++)
		atomic_store(&x->bucket[b].remaining,
			     (x->plan.bucket[b].end - x->plan.bucket[b].begin) * (size_t)round->active);
	atomic_store(&x->gathered, 0);
	x->next_sum = x->plan.buckets - 2;
	if (x->next_sum < 0)
		x->next_sum = 0;
	ls_exchange_expect(x);
	pthread_mutex_unlock(&x->lock);
	if (round->active == 0)
		push_nothing(x);
}

int64_t ls_exchange_microbatches(const ls_exchange *x, int device, const int64_t **index)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	*index = s->index;
	return s->count;
}

float *ls_exchange_slot(ls_exchange *x, int device, int64_t k)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	return x->store[device * x->slots + s->microbatch[k].slot];
}

float *ls_exchange_extra(ls_exchange *x, int device, int64_t k)
{
	const goal g = extra_goal(x);
	wait_for(x, &g, device * x->o.threads);
	return ls_exchange_slot(x, device, k) + x->plan.extra_begin;
}

static void bucket_final(ls_exchange *x, int bucket)
{
	const ls_round *round = &x->rounds[x->step & 1];

	if (x->nodes > 1 && !ls_exchange_must_gather(x, round, bucket)) {
		ls_exchange_push(x, bucket);
		return;
	}
	pthread_mutex_lock(&x->lock);
	if (x->nodes == 1)
		ls_exchange_publish_shard(x, bucket);
	else
		ls_worklist_publish(&x->gather, bucket, (int)x->plan.bucket[bucket].blocks);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* This member's part of the device's share is there. */
static void deliver(ls_exchange *x, size_t begin, size_t end)
{
	for (int b = ls_partition_bucket_at(&x->plan, begin); begin < end; b++) {
		size_t last = x->plan.bucket[b].end < end ? x->plan.bucket[b].end : end;
		if (atomic_fetch_sub_explicit(&x->bucket[b].remaining, last - begin, memory_order_acq_rel) ==
		    last - begin)
			bucket_final(x, b);
		begin = last;
	}
}

/* What is complete by now and lies in this member's ranges. */
static void work_own(ls_exchange *x, int participant)
{
	int bucket, unit;
	while (x->nodes == 1 && ls_worklist_take_own(&x->update, participant, &bucket, &unit))
		ls_exchange_run_update(x, bucket, unit, participant);
	while (x->nodes > 1 && ls_worklist_take_own(&x->gather, participant, &bucket, &unit)) {
		ls_exchange_run_gather(x, bucket, unit, participant);
		if (ls_worklist_done(&x->gather, bucket))
			ls_exchange_push(x, bucket);
	}
}

double ls_exchange_ready(ls_exchange *x, int device, int64_t k, size_t begin, size_t end, ls_member member)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	const ls_schedule_microbatch *microbatch = &s->microbatch[k];
	float **store = x->store + device * x->slots;
	int64_t first, last;

	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, count = (size_t)(last - first) * 16;
	for (int j = microbatch->first_join; j < microbatch->first_join + microbatch->joins; j++)
		ls_sum_into(store[s->join[j].into] + from, store[s->join[j].from] + from, count);
	if (k < s->count - 1)
		return 0;
	const goal g = extra_goal(x);
	int participant = device * x->o.threads + member.rank;
	double waited = 0;
	if (x->nodes > 1 && x->o.staleness == 0) /* nothing of this step before all of the last: see outbox.c */
		waited = wait_exposed(x, &g, participant);
	deliver(x, from, from + count);
	work_own(x, participant);
	return waited;
}

void ls_exchange_need(ls_exchange *x, int device, size_t begin, size_t end, ls_member member)
{
	goal g = { .first = ls_partition_bucket_at(&x->plan, begin),
		   .last = ls_partition_bucket_at(&x->plan, end - 1),
		   .steps = x->step - x->first };

	if (x->nodes > 1)
		wait_exposed(x, &g, device * x->o.threads + member.rank);
}

void ls_exchange_finish(ls_exchange *x, int device, ls_member member)
{
	goal g = { .last = x->nodes == 1 ? x->plan.buckets - 1 : -1,
		   .steps = x->step - x->first + 1,
		   .gathered = x->nodes > 1 };
	int participant = device * x->o.threads + member.rank;
	double start = ls_clock_seconds();

	wait_for(x, &g, participant);
	x->part[participant].finish_s += ls_clock_seconds() - start;
}

ls_status ls_exchange_await(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->plan.buckets - 1,
		   .steps = x->begun && step >= x->first ? step - x->first + 1 : 0,
		   .measured = x->o.rounds > 0 };

	if (x->nodes > 1)
		wait_for(x, &g, x->members + 1);
	return ls_exchange_status(x);
}

ls_status ls_exchange_status(ls_exchange *x)
{
	return x->o.comm ? ls_comm_status(x->o.comm) : LS_OK;
}

ls_exchange_source ls_exchange_source_of(const ls_exchange *x, size_t begin)
{
	int b = ls_partition_bucket_at(&x->plan, begin);

	if (!x->stale)
		return (ls_exchange_source){ .node = -1,
					     .step = x->bucket[b].shard_step,
					     .updates = x->bucket[b].shard_step - x->first };
	const ls_stale_bucket *s = &x->stale->bucket[b];
	return (ls_exchange_source){ .node = s->worker,
				     .step = x->first + atomic_load(&s->served[s->worker]),
				     .updates = s->updates };
}

ls_exchange_times ls_exchange_take_times(ls_exchange *x)
{
	ls_exchange_times times = { 0 };
	for (int d = 0; d < x->o.devices; d++) {
		ls_participant *part = &x->part[d * x->o.threads];
		times.need_s += part->need_s / x->o.devices;
		times.finish_s += part->finish_s / x->o.devices;
		part->need_s = part->finish_s = 0;
	}
	return times;
}
