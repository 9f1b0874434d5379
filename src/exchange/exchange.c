#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exchange/inside.h"

/* Members wait for each other microseconds on one node, milliseconds for other nodes, whose courier needs the core. */
enum { SPINS_ALONE = 20000, SPINS_SHARED = 50, NAP_NS = 20 * 1000 * 1000 };

/* Pieces a run of leaves falls into: at most two a level. */
static int run_pieces(int64_t leaves)
{
	int levels = 1;
	while (leaves > 1) {
		leaves = (leaves + 1) / 2;
		levels++;
	}
	return 2 * levels;
}

static int least(int64_t a, int64_t b)
{
	return (int)(a < b ? a : b);
}

/* A node's pieces are all added up, where nothing depends on the tree any more. */
static int is_flat(const ls_exchange *x)
{
	return x->o.library_sum || x->o.staleness > 0;
}

static void count_parts(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;

	x->nodes = o->courier != NULL ? ls_courier_size(o->courier) : 1;
	x->node = o->courier != NULL ? ls_courier_rank(o->courier) : 0;
	x->o.library_sum = o->library_sum && x->nodes > 1;
	x->workers = x->nodes - o->servers;
	int flat = is_flat(x);
	x->first_owner = o->library_sum ? x->node : o->servers > 0 ? x->workers : 0;
	x->owner = x->node >= x->first_owner ? x->node - x->first_owner : -1;
	x->members = o->devices * o->threads;
	x->participants = x->members + 2;
	int most = o->scattered ? (int)o->leaves : least(o->leaves, run_pieces(o->leaves));
	x->slots = o->scattered ? most + 1 : most;
	x->outputs = flat ? 1 : most;
	x->inputs = o->staleness > 0 ? x->workers : flat ? 1 : least(o->leaves, (int64_t)most * x->workers);
}

static int owner_count(const ls_exchange *x)
{
	return x->o.library_sum ? 1 : x->o.servers > 0 ? x->o.servers : x->nodes;
}

/* Whether the node's pieces can ever need stores of their own. */
static int has_outgoing(const ls_exchange *x)
{
	return x->nodes > 1 && x->node < x->workers && (x->o.devices > 1 || x->o.wire == LS_WIRE_BF16 || is_flat(x));
}

static ls_status new_floats(float **out, size_t count, const char *what)
{
	void *buffer = NULL;
	LS_TRY(ls_buffer_new(&buffer, (count + 16) * sizeof(float), what));
	*out = buffer;
	return LS_OK;
}

static void free_floats(float *buffer, size_t count)
{
	ls_buffer_free(buffer, (count + 16) * sizeof(float));
}

static ls_status make_stores(ls_exchange *x)
{
	int stores = x->o.devices * x->slots;

	x->store = calloc((size_t)stores + 1, sizeof(*x->store));
	x->outgoing = calloc((size_t)x->outputs + 1, sizeof(*x->outgoing));
	if (x->store == NULL || x->outgoing == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's stores");
	for (int i = 0; i < stores; i++)
		LS_TRY(new_floats(&x->store[i], x->plan.width, "gradients of a device"));
	for (int i = 0; has_outgoing(x) && i < x->outputs; i++)
		LS_TRY(new_floats(&x->outgoing[i], x->plan.width, "gradients of a node"));
	if (x->nodes > 1 && x->own > 0)
		LS_TRY(new_floats(&x->incoming, (size_t)x->inputs * x->own, "gradients of other nodes"));
	if (x->o.measured && x->own > 0)
		LS_TRY(new_floats(&x->summed, x->own, "sums of gradients"));
	return LS_OK;
}

/* What `update` left for the extra floats is for everybody, servers included; but a server that answers workers one by
 * one has nothing to tell another. */
int ls_exchange_gets_results(const ls_exchange *x, int bucket)
{
	return bucket == x->plan.buckets - 1 && x->o.staleness == 0;
}

/* What this node owns of every bucket, and how many slices of new values come to it in a step. */
static ls_status make_buckets(ls_exchange *x)
{
	int owners = x->plan.owners, worker = x->node < x->workers;
	size_t slices = (size_t)x->plan.buckets * (size_t)owners;

	x->bucket = calloc((size_t)x->plan.buckets, sizeof(*x->bucket));
	x->norm_counts = calloc((size_t)owners, sizeof(*x->norm_counts));
	x->begin_of = calloc(slices, sizeof(*x->begin_of));
	x->arrivals = calloc(slices, sizeof(*x->arrivals));
	x->comes = calloc(slices, 1);
	x->delta_floats = calloc((size_t)owners, sizeof(*x->delta_floats));
	if (!x->bucket || !x->norm_counts || !x->begin_of || !x->arrivals || !x->comes || !x->delta_floats)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's buckets");
	for (int b = 0; b < x->plan.buckets; b++) {
		ls_bucket_state *s = &x->bucket[b];
		s->begin_of = x->begin_of + (size_t)b * (size_t)owners;
		s->arrivals = x->arrivals + (size_t)b * (size_t)owners;
		s->comes = x->comes + (size_t)b * (size_t)owners;
		for (int o = 0; o < owners; o++) {
			size_t begin, end;
			ls_plan_slice(&x->plan, b, o, &begin, &end);
			if (o == x->owner) {
				s->begin = begin;
				s->end = end;
				s->own_offset = x->own;
				x->own += end - begin;
				x->own_buckets += begin < end && b < x->plan.buckets - 1;
			}
			s->comes[o] = begin < end && (worker || o == x->owner || ls_exchange_gets_results(x, b));
			s->begin_of[o] = x->delta_floats[o];
			x->delta_floats[o] += end - begin;
			if (b < x->plan.buckets - 1)
				x->norm_counts[o] += (end - begin + x->plan.block - 1) / x->plan.block;
		}
	}
	for (int o = 0; o < owners; o++)
		x->norm_senders += x->norm_counts[o] > 0;
	x->summed_left = x->own_buckets;
	x->norms_missing = x->norm_senders;
	return LS_OK;
}

static ls_status make_deltas(ls_exchange *x)
{
	if (x->o.wire != LS_WIRE_BF16 || x->nodes == 1 || x->o.library_sum)
		return LS_OK;
	x->delta_out = calloc(x->own + 1, sizeof(*x->delta_out));
	x->delta_in = calloc((size_t)x->plan.owners, sizeof(*x->delta_in));
	if (x->delta_out == NULL || x->delta_in == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the bf16 wire");
	for (int o = 0; o < x->plan.owners; o++) {
		x->delta_in[o] = calloc(x->delta_floats[o] + 1, sizeof(**x->delta_in));
		if (x->delta_in[o] == NULL)
			return ls_fail(LS_EMEMORY, "no memory for the bf16 wire");
	}
	return LS_OK;
}

static ls_status make_participants(ls_exchange *x)
{
	int inputs = x->inputs > x->o.devices * x->slots ? x->inputs : x->o.devices * x->slots;
	int expands = x->o.wire == LS_WIRE_BF16 && x->nodes > 1;

	x->part = calloc((size_t)x->participants, sizeof(*x->part));
	if (x->part == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's members");
	for (int p = 0; p < x->participants; p++) {
		ls_participant *part = &x->part[p];
		LS_TRY(new_floats(&part->sums, x->plan.block, "sums of a block"));
		LS_TRY(new_floats(&part->scratch, LS_FOLD_SCRATCH, "scratch of sums"));
		part->inputs = calloc((size_t)inputs + 1, sizeof(*part->inputs));
		if (part->inputs == NULL)
			return ls_fail(LS_EMEMORY, "no memory for the exchange's members");
		if (expands)
			LS_TRY(new_floats(&part->expanded, (size_t)x->inputs * x->plan.block, "expanded pieces"));
	}
	return LS_OK;
}

static ls_status make_rounds(ls_exchange *x)
{
	size_t leaves = (size_t)x->o.leaves;

	for (int i = 0; i < 2; i++) {
		LS_TRY(ls_round_init(&x->rounds[i], x->o.leaves, x->nodes, x->node, x->o.devices, is_flat(x)));
		x->node_of[i] = calloc(leaves + 1, sizeof(int));
		x->device_of[i] = calloc(leaves + 1, sizeof(int));
		if (x->node_of[i] == NULL || x->device_of[i] == NULL)
			return ls_fail(LS_EMEMORY, "no memory to plan steps of %zu leaves", leaves);
	}
	return LS_OK;
}

static int courier_work(void *context)
{
	ls_exchange *x = context;
	return ls_exchange_help(x, x->members);
}

static void courier_failed(void *context)
{
	ls_exchange_notify(context);
}

static ls_status make(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;
	int updaters = x->nodes > 1 ? x->participants : x->members;

	LS_TRY(ls_plan_init(&x->plan, o->live, o->extra, o->block, o->bucket, owner_count(x)));
	LS_TRY(make_buckets(x));
	LS_TRY(make_stores(x));
	LS_TRY(make_deltas(x));
	LS_TRY(make_participants(x));
	LS_TRY(make_rounds(x));
	LS_TRY(ls_worklist_init(&x->gather, x->plan.buckets, x->members > 0 ? x->members : 1));
	LS_TRY(ls_worklist_init(&x->update, x->plan.buckets, updaters));
	x->summable = calloc((size_t)x->plan.buckets, 1);
	x->norms = calloc(x->plan.blocks + 1, sizeof(double));
	x->norms_packed = calloc(x->plan.blocks * (size_t)x->plan.owners + 1, sizeof(double));
	if (x->summable == NULL || x->norms == NULL || x->norms_packed == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's sums");
	LS_TRY(ls_exchange_make_mail(x));
	LS_TRY(ls_stale_new(x));
	if (o->courier != NULL) {
		ls_courier_on_failure(o->courier, courier_failed, x);
		ls_courier_set_work(o->courier, courier_work, x);
	}
	return LS_OK;
}

ls_status ls_exchange_new(ls_exchange **out, const ls_exchange_options *options)
{
	ls_exchange *x = calloc(1, sizeof(*x));
	if (x == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the exchange");
	x->o = *options;
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->event_lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->event, &monotonic);
	pthread_condattr_destroy(&monotonic);
	count_parts(x);
	x->spins = x->nodes == 1 && x->members <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_ALONE : SPINS_SHARED;
	ls_status status = make(x);
	if (status != LS_OK) {
		ls_exchange_free(x);
		return status;
	}
	*out = x;
	return LS_OK;
}

static void free_participants(ls_exchange *x)
{
	for (int p = 0; x->part != NULL && p < x->participants; p++) {
		free_floats(x->part[p].expanded, (size_t)x->inputs * x->plan.block);
		free(x->part[p].inputs);
		free_floats(x->part[p].scratch, LS_FOLD_SCRATCH);
		free_floats(x->part[p].sums, x->plan.block);
	}
	free(x->part);
}

static void free_stores(ls_exchange *x)
{
	for (int o = 0; x->delta_in != NULL && o < x->plan.owners; o++)
		free(x->delta_in[o]);
	free(x->delta_in);
	free(x->delta_out);
	free_floats(x->summed, x->own);
	free_floats(x->incoming, (size_t)x->inputs * x->own);
	for (int i = 0; x->outgoing != NULL && i < x->outputs; i++)
		free_floats(x->outgoing[i], x->plan.width);
	for (int i = 0; x->store != NULL && i < x->o.devices * x->slots; i++)
		free_floats(x->store[i], x->plan.width);
	free(x->outgoing);
	free(x->store);
}

void ls_exchange_free(ls_exchange *x)
{
	if (x == NULL)
		return;
	ls_stale_free(x);
	ls_exchange_free_mail(x);
	free(x->norms_packed);
	free(x->norms);
	free(x->summable);
	ls_worklist_release(&x->update);
	ls_worklist_release(&x->gather);
	for (int i = 0; i < 2; i++) {
		free(x->device_of[i]);
		free(x->node_of[i]);
		ls_round_release(&x->rounds[i]);
	}
	free_participants(x);
	free_stores(x);
	free(x->delta_floats);
	free(x->comes);
	free(x->arrivals);
	free(x->begin_of);
	free(x->norm_counts);
	free(x->bucket);
	ls_plan_release(&x->plan);
	pthread_cond_destroy(&x->event);
	pthread_mutex_destroy(&x->event_lock);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

const ls_plan *ls_exchange_plan(const ls_exchange *x)
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

int ls_exchange_is_owner(const ls_exchange *x, int node)
{
	return ls_exchange_owner_index(x, node) >= 0;
}

/* Waiting */

/* Something changed: whoever sleeps looks again. The courier, too, for there may be work. */
void ls_exchange_notify(ls_exchange *x)
{
	if (atomic_load(&x->sleepers) > 0) {
		pthread_mutex_lock(&x->event_lock);
		pthread_cond_broadcast(&x->event);
		pthread_mutex_unlock(&x->event_lock);
	}
	if (x->o.courier != NULL)
		ls_courier_wake(x->o.courier);
}

static int has_failed(const ls_exchange *x)
{
	return x->o.courier != NULL && ls_courier_has_failed(x->o.courier);
}

/* What is waited for: a range of buckets at a step's values, or the node's gathering. */
typedef struct goal {
	int first, last;
	uint64_t steps; /* of new values */
	int gathered, measured;
} goal;

static int is_met(ls_exchange *x, const goal *g)
{
	if (x->stale != NULL)
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

static void nap(ls_exchange *x, const goal *g)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NAP_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&x->event_lock);
	atomic_fetch_add(&x->sleepers, 1);
	if (!is_met(x, g) && !has_failed(x))
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
	for (int spin = 0; !is_met(x, g) && !has_failed(x); spin++) {
		if (help(x, participant))
			spin = 0;
		else if (spin < x->spins)
			relax();
		else
			nap(x, g);
	}
}

/* A step */

static void deal_round(ls_exchange *x, const ls_exchange_deal *deal)
{
	int parity = (int)(deal->step & 1);
	ls_round *round = &x->rounds[parity];
	size_t bytes = (size_t)deal->leaves * sizeof(int);

	assert(deal->leaves >= 1 && deal->leaves <= x->o.leaves);
	if (round->leaves == deal->leaves && memcmp(x->node_of[parity], deal->node, bytes) == 0 &&
	    memcmp(x->device_of[parity], deal->device, bytes) == 0) {
		round->step = deal->step;
		return;
	}
	memcpy(x->node_of[parity], deal->node, bytes);
	memcpy(x->device_of[parity], deal->device, bytes);
	ls_round_deal(round, deal->step, deal->leaves, deal->node, deal->device);
	for (int d = 0; d < x->o.devices; d++)
		assert(round->device[d].slots <= x->slots);
	assert(round->gather.outputs <= x->outputs && (is_flat(x) || round->combine.inputs <= x->inputs));
}

/* The extra floats of the last step have been seen to: their place may be written again. */
static void await_extra(ls_exchange *x, int participant)
{
	int last = x->plan.buckets - 1;
	goal g = { .first = last, .last = last, .steps = x->step - x->first };
	wait_for(x, &g, participant);
}

/* A node without leaves has nothing to push; but a library's sum, and a server that counts rounds, want its zeros. */
static void push_nothing(ls_exchange *x)
{
	if (x->o.staleness > 0 && x->node < x->workers)
		await_extra(x, x->members + 1);
	for (int b = x->plan.buckets - 1; is_flat(x) && x->node < x->workers && b >= 0; b--) {
		const ls_bucket *cut = &x->plan.bucket[b];
		memset(x->outgoing[0] + cut->begin, 0, (cut->end - cut->begin) * sizeof(float));
		ls_exchange_push(x, b);
	}
	atomic_store(&x->gathered, x->plan.buckets);
}

/* Two steps are kept apart, no more: the one before the last must be complete, also on a node that has had no leaves
 * and so waited for nothing. */
static void leave_room(ls_exchange *x, uint64_t step)
{
	goal g = { .last = x->plan.buckets - 1, .measured = x->o.measured && x->nodes > 1 };

	if (x->begun && step >= x->first + 1) /* library sums come in one order everywhere: no two steps at once */
		g.steps = step - x->first - !x->o.library_sum;
	wait_for(x, &g, x->nodes > 1 ? x->members + 1 : 0);
}

void ls_exchange_begin(ls_exchange *x, const ls_exchange_deal *deal)
{
	const ls_round *round = &x->rounds[deal->step & 1];

	leave_room(x, deal->step);
	pthread_mutex_lock(&x->lock);
	if (!x->begun) {
		x->first = x->norm_step = deal->step;
		for (int b = 0; b < x->plan.buckets; b++)
			x->bucket[b].slice_step = deal->step;
	}
	x->begun = 1;
	x->step = deal->step;
	x->scale = deal->scale;
	deal_round(x, deal);
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

int64_t ls_exchange_leaves(const ls_exchange *x, int device, const int64_t **index)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	*index = s->index;
	return s->count;
}

float *ls_exchange_slot(ls_exchange *x, int device, int64_t k)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	return x->store[device * x->slots + s->leaf[k].slot];
}

float *ls_exchange_extra(ls_exchange *x, int device, int64_t k)
{
	await_extra(x, device * x->o.threads);
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
		ls_exchange_publish_slice(x, bucket);
	else
		ls_worklist_publish(&x->gather, bucket, (int)x->plan.bucket[bucket].blocks);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* This member's part of the device's share is there. */
static void deliver(ls_exchange *x, size_t begin, size_t end)
{
	for (int b = ls_plan_bucket_at(&x->plan, begin); begin < end; b++) {
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

void ls_exchange_ready(ls_exchange *x, int device, int64_t k, size_t begin, size_t end, ls_member member)
{
	const ls_device_schedule *s = &x->rounds[x->step & 1].device[device];
	const ls_schedule_leaf *leaf = &s->leaf[k];
	float **store = x->store + device * x->slots;
	int64_t first, last;

	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, count = (size_t)(last - first) * 16;
	for (int j = leaf->first_join; j < leaf->first_join + leaf->joins; j++)
		ls_sum_into(store[s->join[j].into] + from, store[s->join[j].from] + from, count);
	if (k == s->count - 1) {
		deliver(x, from, from + count);
		work_own(x, device * x->o.threads + member.rank);
	}
}

void ls_exchange_need(ls_exchange *x, int device, size_t begin, size_t end, ls_member member)
{
	goal g = { .first = ls_plan_bucket_at(&x->plan, begin),
		   .last = ls_plan_bucket_at(&x->plan, end - 1),
		   .steps = x->step - x->first };
	int participant = device * x->o.threads + member.rank;

	if (x->nodes == 1 || is_met(x, &g))
		return;
	double start = ls_clock_seconds();
	wait_for(x, &g, participant);
	double now = ls_clock_seconds();
	x->part[participant].need_s += now - start;
	if (x->o.act != NULL)
		x->o.act(x->o.context, LS_ACT_WAIT, participant, g.last, start, now);
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
		   .measured = x->o.measured };

	if (x->nodes > 1)
		wait_for(x, &g, x->members + 1);
	return ls_exchange_status(x);
}

ls_status ls_exchange_status(ls_exchange *x)
{
	return x->o.courier != NULL ? ls_courier_status(x->o.courier) : LS_OK;
}

ls_exchange_source ls_exchange_source_of(const ls_exchange *x, size_t begin)
{
	int b = ls_plan_bucket_at(&x->plan, begin);

	if (x->stale == NULL)
		return (ls_exchange_source){ .node = -1,
					     .step = x->bucket[b].slice_step,
					     .updates = x->bucket[b].slice_step - x->first };
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

size_t ls_exchange_bytes(const ls_exchange_options *options)
{
	ls_exchange x = { .o = *options };
	count_parts(&x);
	size_t width = (options->live + options->extra + 31) / 16 * 16, own = 0;
	if (x.owner >= 0)
		own = width / (size_t)owner_count(&x);
	size_t floats = (size_t)(options->devices * x.slots) * width;
	floats += has_outgoing(&x) ? (size_t)x.outputs * width : 0;
	floats += x.nodes > 1 ? (size_t)x.inputs * own : 0;
	floats += options->measured ? own : 0;
	floats += (size_t)x.participants * (options->block + LS_FOLD_SCRATCH);
	return floats * sizeof(float);
}
