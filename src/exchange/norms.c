/*
 * norms.c - where nothing is updated before all of the step is measured (clipping, LAMB).
 *
 * Owners measure the blocks of their shards as they sum them and tell everybody. Whoever has all of a step's figures
 * knows what they are for, the scale or the ratios; owners then go on from the sums they kept, with another round of
 * measuring or with the update. The cost of a round is a wait for the slowest owner, once, and a few bytes a block.
 *
 * A round's figures lie in `all` in block order, whoever they came from. In messages an owner's lie one after another.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/inside.h"

enum { TAG_NORMS = LS_TAG_COLLECT - 1 };

static size_t owner_figures(const ls_figures *f, int o)
{
	return f->begin[o + 1] - f->begin[o];
}

static ls_load load_of(const ls_exchange *x, const ls_figures *f, int o)
{
	return (ls_load){ .buffer = f->packed + f->begin[o],
			  .bytes = owner_figures(f, o) * sizeof(double),
			  .step = x->norm_step };
}

/* Like a shard, norms roll by themselves: those of the next round are expected when this one's are complete. */
void ls_exchange_arm_norms(ls_exchange *x)
{
	const ls_figures *f = &x->figures[x->norm_round];

	if (x->norm_armed || x->norm_step > x->step) /* a later round of the last step may come in this one */
		return;
	x->norm_armed = 1;
	for (int o = 0; o < x->plan.owners; o++)
		if (x->first_owner + o != x->node && owner_figures(f, o) > 0)
			ls_outbox_post(&x->norm_in[o], load_of(x, f, o));
}

/* On with the own shards, which have been through so many rounds. */
static void publish_all(ls_exchange *x, int rounds_done)
{
	for (int b = 0; b < x->plan.buckets - 1; b++) {
		if (x->bucket[b].begin == x->bucket[b].end)
			continue;
		x->bucket[b].rounds_done = rounds_done;
		ls_exchange_publish_shard(x, b);
	}
}

/* What a shard's blocks come to lies together in `all`, too. */
static size_t shard_figures(const ls_exchange *x, const ls_figures *f, int b, int o, double **all)
{
	size_t begin, end;
	ls_partition_shard(&x->plan, b, o, &begin, &end);
	if (begin == end)
		return 0;
	size_t first = ls_partition_block_at(&x->plan, begin), last = ls_partition_block_at(&x->plan, end - 1);
	*all = f->all + f->at[first];
	return f->at[last + 1] - f->at[first];
}

/* The figures of owner o's live shards, in order: out of `all` or into it. */
static void pack_norms(ls_exchange *x, int o, int into_all)
{
	const ls_figures *f = &x->figures[x->norm_round];
	double *packed = f->packed + f->begin[o], *all = NULL;

	for (int b = 0; b < x->plan.buckets - 1; b++) {
		size_t count = shard_figures(x, f, b, o, &all);
		if (count > 0)
			memcpy(into_all ? all : packed, into_all ? packed : all, count * sizeof(double));
		packed += count;
	}
}

static void begin_round(ls_exchange *x, int round)
{
	x->norm_round = round;
	x->norm_armed = 0;
	x->norms_missing = x->norm_senders;
	x->summed_left = x->own_buckets;
}

static void norms_complete(ls_exchange *x)
{
	int done = x->norm_round + 1;

	for (int o = 0; o < x->plan.owners; o++)
		if (o != x->owner)
			pack_norms(x, o, 1);
	x->o.measured_all(x->o.context, x->norm_round, x->figures[x->norm_round].all,
			  x->figures[x->norm_round].begin[x->plan.owners]);
	begin_round(x, done % x->o.rounds);
	if (done == x->o.rounds) {
		x->norm_step++;
		atomic_fetch_add(&x->norm_steps, 1);
	}
	publish_all(x, done);
	if (x->nodes > 1 && !x->o.library_sum)
		ls_exchange_arm_norms(x);
}

static void count_norms(ls_exchange *x)
{
	if (--x->norms_missing == 0)
		norms_complete(x);
}

static void norms_done(void *context, ls_message *message)
{
	ls_outbox *outbox = context;
	ls_exchange *x = outbox->exchange;

	(void)message;
	ls_outbox_home(outbox);
	pthread_mutex_lock(&x->lock);
	count_norms(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* All of the own shards are summed and the last norms have left: tell everybody the new ones. */
static void tell_norms(ls_exchange *x)
{
	if (!x->norms_wanted || x->norms_leaving > 0)
		return;
	const ls_figures *f = &x->figures[x->norm_round];
	x->norms_wanted = 0;
	pack_norms(x, x->owner, 0);
	for (int n = 0; n < x->nodes && !x->o.library_sum; n++) {
		if (n == x->node)
			continue;
		x->norms_leaving++;
		ls_outbox_post(&x->norm_out[n], load_of(x, f, x->owner));
	}
	count_norms(x);
}

static void norms_sent(void *context, ls_message *message)
{
	ls_outbox *outbox = context;
	ls_exchange *x = outbox->exchange;

	(void)message;
	ls_outbox_home(outbox);
	pthread_mutex_lock(&x->lock);
	x->norms_leaving--;
	tell_norms(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

void ls_exchange_shard_measured(ls_exchange *x)
{
	if (--x->summed_left > 0)
		return;
	x->norms_wanted = 1;
	tell_norms(x);
}

/* Where the figures of blocks and of owners begin. */
static void place_figures(ls_exchange *x, int round, size_t blocks)
{
	ls_figures *f = &x->figures[round];
	double *ignored = NULL;

	for (size_t k = 0; k < blocks; k++) {
		size_t begin = k * x->plan.block, end = begin + x->plan.block;
		end = end < x->plan.live ? end : x->plan.live;
		size_t count = x->o.figures ? x->o.figures(x->o.context, round, begin, end) : 1;
		assert(count > 0);
		f->at[k + 1] = f->at[k] + count;
	}
	for (int o = 0; o < x->plan.owners; o++) {
		f->begin[o + 1] = f->begin[o];
		for (int b = 0; b < x->plan.buckets - 1; b++)
			f->begin[o + 1] += shard_figures(x, f, b, o, &ignored);
	}
}

static ls_status make_round(ls_exchange *x, int round)
{
	ls_figures *f = &x->figures[round];
	size_t blocks = x->plan.bucket[x->plan.buckets - 1].first_block;

	f->at = calloc(blocks + 1, sizeof(*f->at));
	f->begin = calloc((size_t)x->plan.owners + 1, sizeof(*f->begin));
	if (!f->at || !f->begin)
		return ls_fail(LS_EMEMORY, "no memory for the norms of %zu blocks", blocks);
	place_figures(x, round, blocks);
	f->all = calloc(f->at[blocks] + 1, sizeof(*f->all));
	f->packed = calloc(f->at[blocks] + 1, sizeof(*f->packed));
	if (!f->all || !f->packed)
		return ls_fail(LS_EMEMORY, "no memory for the norms of %zu blocks", blocks);
	return LS_OK;
}

ls_status ls_exchange_make_figures(ls_exchange *x)
{
	assert(x->o.rounds <= LS_ROUNDS_MAX);
	for (int round = 0; round < x->o.rounds; round++)
		LS_TRY(make_round(x, round));
	for (int o = 0; o < x->plan.owners && x->o.rounds > 0; o++)
		x->norm_senders += owner_figures(&x->figures[0], o) > 0;
	begin_round(x, 0);
	return LS_OK;
}

ls_status ls_exchange_make_norms(ls_exchange *x)
{
	ls_message own = { .outgoing = 1, .what = "norms of blocks, part", .done = norms_sent };
	ls_message others = { .what = "norms of blocks, part", .done = norms_done };

	x->norm_out = ls_outbox_new(x, (size_t)x->nodes, &own);
	x->norm_in = ls_outbox_new(x, (size_t)x->plan.owners, &others);
	if (!x->norm_out || !x->norm_in)
		return ls_fail(LS_EMEMORY, "no memory for the messages of norms");
	for (int o = 0; o < x->plan.owners; o++)
		ls_outbox_address(&x->norm_in[o], 0, x->first_owner + o, TAG_NORMS);
	for (int n = 0; n < x->nodes; n++)
		ls_outbox_address(&x->norm_out[n], 0, n, TAG_NORMS);
	return LS_OK;
}

void ls_exchange_free_norms(ls_exchange *x)
{
	for (int round = 0; round < LS_ROUNDS_MAX; round++) {
		free(x->figures[round].packed);
		free(x->figures[round].all);
		free(x->figures[round].begin);
		free(x->figures[round].at);
	}
	free(x->norm_in);
	free(x->norm_out);
}
