/*
 * exchange.c - what devices call in a step, and how they wait.
 */
#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exchange/exchange_internal.h"

/* A waiting thread checks again after this time, for a change between its last check and its sleep. */
enum { NAP_NS = 20 * 1000 * 1000 };

const ls_partition *ls_exchange_partition(const ls_exchange *x)
{
	return &x->partition;
}

size_t ls_exchange_statistics_begin(const ls_exchange *x)
{
	return x->partition.statistics_begin;
}

int ls_exchange_owner_index(const ls_exchange *x, int node)
{
	int index = node - x->first_owner;
	return index >= 0 && index < x->owners ? index : -1;
}

/* Waiting */

/* Something changed: wake waiting threads, and the communication thread, for there may be work. */
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

void ls_exchange_values_arrived(ls_exchange *x, int bucket, int owner)
{
	atomic_fetch_add(&x->bucket[bucket].arrivals[owner], 1);
	ls_exchange_notify(x);
}

void ls_exchange_bucket_done(ls_exchange *x)
{
	atomic_fetch_add(&x->buckets_done, 1);
	ls_exchange_notify(x);
}

/* What is waited for: new values of a range of buckets, norms, or the end of this node's part in the step. */
typedef struct goal {
	int first, last;
	uint64_t steps; /* of new values and norms */
	int norms, buckets_done;
} goal;

static int is_met(ls_exchange *x, const goal *g)
{
	for (int b = g->first; b <= g->last; b++)
		for (int o = 0; o < x->owners; o++)
			if (x->bucket[b].comes[o] &&
			    atomic_load_explicit(&x->bucket[b].arrivals[o], memory_order_acquire) < g->steps)
				return 0;
	if (g->norms && atomic_load(&x->norm_pass.steps) < g->steps)
		return 0;
	return !g->buckets_done || atomic_load(&x->buckets_done) == x->partition.buckets;
}

/* Sleep, unless something has changed since change number `seen`. */
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
	return (participant < x->members && ls_exchange_sum_any_block(x, participant)) ||
	       ls_exchange_update_any_block(x, participant);
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Wait until the goal is reached, doing any work there is meanwhile. */
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
	if (x->o.trace)
		x->o.trace(x->o.context, LS_EVENT_WAIT, participant, g->last, start, now);
	return now - start;
}

/* A step */

static void assign_step(ls_exchange *x, const ls_exchange_assignment *assign)
{
	int parity = (int)(assign->step & 1);
	ls_summation *sum = &x->summation[parity];
	size_t bytes = (size_t)assign->microbatches * sizeof(int);

	assert(assign->microbatches >= 1 && assign->microbatches <= x->o.microbatches);
	if (sum->microbatches == assign->microbatches && memcmp(x->node_of[parity], assign->node, bytes) == 0 &&
	    memcmp(x->device_of[parity], assign->device, bytes) == 0) {
		sum->step = assign->step;
		return;
	}
	memcpy(x->node_of[parity], assign->node, bytes);
	memcpy(x->device_of[parity], assign->device, bytes);
	ls_summation_assign(sum, assign->step, assign->microbatches, assign->node, assign->device);
	ls_summation_buffers most = ls_summation_buffers_of(sum);
	assert(most.stores <= x->slots && most.outputs <= x->outputs);
	assert(sum->in_order || (most.others <= x->rows && sum->total_fold.inputs <= x->inputs));
}

/* Statistics of the last step have been exchanged: their place may be written again, and their owners have posted the
 * results to everybody. */
static goal statistics_goal(const ls_exchange *x)
{
	int last = x->partition.buckets - 1;
	return (goal){ .first = last, .last = last, .steps = x->step - x->first };
}

void ls_exchange_await_step(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->partition.buckets - 1, .steps = step - x->first };
	wait_for(x, &g, x->waiter);
}

/* Two steps are kept apart, no more: the one before the last must be complete, also on a node that has had no
 * micro-batches and so waited for nothing. */
static void await_older_steps(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->partition.buckets - 1, .norms = x->o.norm_passes > 0 };

	if (x->begun && step >= x->first + 1)
		g.steps = step - x->first - (uint64_t)x->strategy->overlap;
	wait_for(x, &g, x->waiter);
}

void ls_exchange_begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	const ls_summation *sum = ls_exchange_summation(x, assign->step);

	await_older_steps(x, assign->step);
	pthread_mutex_lock(&x->lock);
	if (!x->begun) {
		x->first = x->norm_pass.step = assign->step;
		for (int b = 0; b < x->partition.buckets; b++)
			x->bucket[b].shard_step = assign->step;
	}
	x->begun = 1;
	x->step = assign->step;
	assign_step(x, assign);
	for (int b = 0; b < x->partition.buckets; b++) {
		const ls_bucket *cut = &x->partition.bucket[b];
		atomic_store(&x->bucket[b].remaining, (cut->end - cut->begin) * (size_t)sum->active);
	}
	atomic_store(&x->buckets_done, 0);
	x->strategy->begin(x, assign);
	pthread_mutex_unlock(&x->lock);
	if (sum->active > 0)
		return;
	if (x->strategy->idle)
		x->strategy->idle(x);
	atomic_store(&x->buckets_done, x->partition.buckets);
}

int64_t ls_exchange_microbatches(const ls_exchange *x, int device, const int64_t **index)
{
	const ls_device_schedule *s = &ls_exchange_summation(x, x->step)->device[device];
	*index = s->index;
	return s->count;
}

float *ls_exchange_slot(ls_exchange *x, int device, int64_t k)
{
	const ls_device_schedule *s = &ls_exchange_summation(x, x->step)->device[device];
	return x->store[device * x->slots + s->microbatch[k].slot];
}

float *ls_exchange_statistics(ls_exchange *x, int device, int64_t k)
{
	const goal g = statistics_goal(x);
	wait_for(x, &g, device * x->o.threads);
	return ls_exchange_slot(x, device, k) + x->partition.statistics_begin;
}

/* This worker's part of the device's gradient is final. */
static void deliver(ls_exchange *x, size_t begin, size_t end)
{
	for (int b = ls_partition_bucket_at(&x->partition, begin); begin < end; b++) {
		size_t bucket_end = x->partition.bucket[b].end, last = bucket_end < end ? bucket_end : end;
		if (atomic_fetch_sub_explicit(&x->bucket[b].remaining, last - begin, memory_order_acq_rel) ==
		    last - begin)
			x->strategy->bucket_ready(x, b);
		begin = last;
	}
}

double ls_exchange_ready(ls_exchange *x, int device, int64_t k, size_t begin, size_t end, ls_member member)
{
	const ls_device_schedule *s = &ls_exchange_summation(x, x->step)->device[device];
	const ls_schedule_microbatch *microbatch = &s->microbatch[k];
	float **store = x->store + device * x->slots;
	int64_t first, last;

	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, count = (size_t)(last - first) * 16;
	for (int j = microbatch->first_join; j < microbatch->first_join + microbatch->joins; j++)
		ls_sum_into(store[s->join[j].into] + from, store[s->join[j].from] + from, count);
	if (k < s->count - 1)
		return 0;
	const goal g = statistics_goal(x);
	int participant = device * x->o.threads + member.rank;
	double waited = 0;
	if (x->strategy->synchronous) /* nothing of this step before all of the last: see send_slot.c */
		waited = wait_exposed(x, &g, participant);
	deliver(x, from, from + count);
	x->strategy->do_own_work(x, participant);
	return waited;
}

void ls_exchange_need(ls_exchange *x, int device, size_t begin, size_t end, ls_member member)
{
	goal g = { .first = ls_partition_bucket_at(&x->partition, begin),
		   .last = ls_partition_bucket_at(&x->partition, end - 1),
		   .steps = x->step - x->first };

	wait_exposed(x, &g, device * x->o.threads + member.rank);
}

void ls_exchange_finish(ls_exchange *x, int device, ls_member member)
{
	goal g = { .last = -1, .buckets_done = 1 };
	int participant = device * x->o.threads + member.rank;
	double start = ls_clock_seconds();

	wait_for(x, &g, participant);
	x->part[participant].finish_s += ls_clock_seconds() - start;
}

ls_status ls_exchange_await(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->partition.buckets - 1,
		   .steps = x->begun && step >= x->first ? step - x->first + 1 : 0,
		   .norms = x->o.norm_passes > 0 };

	wait_for(x, &g, x->waiter);
	return ls_exchange_status(x);
}

ls_status ls_exchange_status(ls_exchange *x)
{
	return x->o.comm ? ls_comm_status(x->o.comm) : LS_OK;
}

ls_exchange_source ls_exchange_source_of(const ls_exchange *x, size_t begin)
{
	return x->strategy->source(x, ls_partition_bucket_at(&x->partition, begin));
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
