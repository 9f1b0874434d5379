#include "exchange/norm_pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/exchange_internal.h"

static size_t owner_norms(const ls_norms *norms, int o)
{
	return norms->begin[o + 1] - norms->begin[o];
}

static ls_send_load load_of(const ls_exchange *x, int o)
{
	const ls_norms *norms = &x->norm_pass.norms[x->norm_pass.pass];
	return (ls_send_load){ .buffer = norms->packed + norms->begin[o],
			       .bytes = owner_norms(norms, o) * sizeof(double),
			       .step = x->norm_pass.step };
}

void ls_norm_pass_expect(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;

	if (x->o.norm_passes == 0 || n->expecting || n->step > x->step) /* a later pass of the last step may come now */
		return;
	n->expecting = 1;
	for (int o = 0; o < x->owners; o++)
		if (o != x->owner && owner_norms(&n->norms[n->pass], o) > 0)
			ls_send_slot_post(&n->in[o], load_of(x, o));
}

int ls_norm_pass_is_due(const ls_exchange *x, int bucket)
{
	return !ls_exchange_is_statistics(x, bucket) && x->bucket[bucket].passes_done < x->o.norm_passes;
}

float *ls_norm_pass_kept(ls_exchange *x, int bucket, size_t begin)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	return x->norm_pass.kept + b->own_offset + (begin - b->begin);
}

void ls_norm_pass_block(ls_exchange *x, int bucket, size_t begin, size_t end, const float *sums, int participant)
{
	int pass = x->bucket[bucket].passes_done;
	const ls_norms *norms = &x->norm_pass.norms[pass];
	ls_norm_block block = { .pass = pass,
				.begin = begin,
				.end = end < x->partition.reachable ? end : x->partition.reachable,
				.sums = ls_norm_pass_kept(x, bucket, begin),
				.norms = norms->all + norms->at[ls_partition_block_at(&x->partition, begin)],
				.participant = participant };

	if (sums != block.sums)
		memcpy(block.sums, sums, (end - begin) * sizeof(float));
	x->o.norms(x->o.context, &block);
}

/* The norms of a shard lie together in `all`, too. */
static size_t shard_norms(const ls_exchange *x, const ls_norms *norms, int b, int o, double **all)
{
	size_t begin, end;
	ls_partition_shard(&x->partition, b, o, &begin, &end);
	if (begin == end)
		return 0;
	size_t first = ls_partition_block_at(&x->partition, begin),
	       last = ls_partition_block_at(&x->partition, end - 1);
	*all = norms->all + norms->at[first];
	return norms->at[last + 1] - norms->at[first];
}

/* The norms of owner o's shards, in order: from `all` to `packed` or back. */
static void copy_norms(ls_exchange *x, int o, int into_all)
{
	const ls_norms *norms = &x->norm_pass.norms[x->norm_pass.pass];
	double *packed = norms->packed + norms->begin[o], *all = NULL;

	for (int b = 0; !ls_exchange_is_statistics(x, b); b++) {
		size_t count = shard_norms(x, norms, b, o, &all);
		if (count > 0)
			memcpy(into_all ? all : packed, into_all ? packed : all, count * sizeof(double));
		packed += count;
	}
}

static void begin_pass(ls_exchange *x, int pass)
{
	ls_norm_pass *n = &x->norm_pass;
	n->pass = pass;
	n->expecting = 0;
	n->owners_left = n->senders;
	n->shards_left = n->own_shards;
}

static void complete(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;
	int done = n->pass + 1;

	for (int o = 0; o < x->owners; o++)
		if (o != x->owner)
			copy_norms(x, o, 1);
	x->o.norms_complete(x->o.context, n->pass, n->norms[n->pass].all, n->norms[n->pass].begin[x->owners]);
	begin_pass(x, done % x->o.norm_passes);
	if (done == x->o.norm_passes) {
		n->step++;
		atomic_fetch_add(&n->steps, 1);
	}
	for (int b = 0; !ls_exchange_is_statistics(x, b); b++) { /* on with the own shards */
		if (x->bucket[b].begin == x->bucket[b].end)
			continue;
		x->bucket[b].passes_done = done;
		ls_exchange_publish_shard(x, b);
	}
	ls_norm_pass_expect(x);
}

static void count_owner(ls_exchange *x)
{
	if (--x->norm_pass.owners_left == 0)
		complete(x);
}

static void norms_received(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;

	(void)message;
	ls_send_slot_done(slot);
	pthread_mutex_lock(&x->lock);
	count_owner(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* All of the own shards are summed and the last norms have left: send the new ones to all nodes. */
static void send_norms(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;

	if (!n->wanted || n->leaving > 0)
		return;
	n->wanted = 0;
	copy_norms(x, x->owner, 0);
	for (int k = 1; k < x->group; k++) {
		int peer = (x->node + k) % x->group;
		n->leaving++;
		ls_send_slot_post(&n->out[peer], load_of(x, x->owner));
	}
	count_owner(x);
}

static void norms_sent(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;

	(void)message;
	ls_send_slot_done(slot);
	pthread_mutex_lock(&x->lock);
	x->norm_pass.leaving--;
	send_norms(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

void ls_norm_pass_shard_done(ls_exchange *x)
{
	if (--x->norm_pass.shards_left > 0)
		return;
	x->norm_pass.wanted = 1;
	send_norms(x);
}

/* Where the norms of blocks and of owners begin. */
static void place_norms(ls_exchange *x, int pass, size_t blocks)
{
	ls_norms *norms = &x->norm_pass.norms[pass];
	double *ignored = NULL;

	for (size_t k = 0; k < blocks; k++) {
		size_t begin = k * x->partition.block, end = begin + x->partition.block;
		end = end < x->partition.reachable ? end : x->partition.reachable;
		size_t count = x->o.norm_count ? x->o.norm_count(x->o.context, pass, begin, end) : 1;
		assert(count > 0);
		norms->at[k + 1] = norms->at[k] + count;
	}
	for (int o = 0; o < x->owners; o++) {
		norms->begin[o + 1] = norms->begin[o];
		for (int b = 0; !ls_exchange_is_statistics(x, b); b++)
			norms->begin[o + 1] += shard_norms(x, norms, b, o, &ignored);
	}
}

static ls_status make_norms(ls_exchange *x, int pass)
{
	ls_norms *norms = &x->norm_pass.norms[pass];
	size_t blocks = x->partition.bucket[x->partition.buckets - 1].first_block;

	norms->at = calloc(blocks + 1, sizeof(*norms->at));
	norms->begin = calloc((size_t)x->owners + 1, sizeof(*norms->begin));
	if (!norms->at || !norms->begin)
		return ls_fail(LS_EMEMORY, "no memory for the norms of %zu blocks", blocks);
	place_norms(x, pass, blocks);
	norms->all = calloc(norms->at[blocks] + 1, sizeof(*norms->all));
	norms->packed = calloc(norms->at[blocks] + 1, sizeof(*norms->packed));
	if (!norms->all || !norms->packed)
		return ls_fail(LS_EMEMORY, "no memory for the norms of %zu blocks", blocks);
	return LS_OK;
}

static ls_status make_messages(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;
	ls_message own = { .outgoing = 1, .what = "norms of this step", .done = norms_sent };
	ls_message others = { .what = "norms of this step", .done = norms_received };

	n->out = ls_send_slots_new(x, (size_t)x->group, &own);
	n->in = ls_send_slots_new(x, (size_t)x->owners, &others);
	if (!n->out || !n->in)
		return ls_fail(LS_EMEMORY, "no memory for the messages of norms");
	for (int o = 0; o < x->owners; o++) {
		ls_send_slot_address(&n->in[o], 0, x->first_owner + o, LS_TAG_NORMS);
		n->in[o].message.number = -1;
	}
	for (int peer = 0; peer < x->group; peer++) {
		ls_send_slot_address(&n->out[peer], 0, peer, LS_TAG_NORMS);
		n->out[peer].message.number = -1;
	}
	return LS_OK;
}

ls_status ls_norm_pass_init(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;

	assert(x->o.norm_passes <= LS_NORM_PASSES_MAX);
	if (x->o.norm_passes == 0)
		return LS_OK;
	for (int pass = 0; pass < x->o.norm_passes; pass++)
		LS_TRY(make_norms(x, pass));
	for (int o = 0; o < x->owners; o++)
		n->senders += owner_norms(&n->norms[0], o) > 0;
	for (int b = 0; !ls_exchange_is_statistics(x, b); b++)
		n->own_shards += x->bucket[b].begin < x->bucket[b].end;
	begin_pass(x, 0);
	if (x->size.kept > 0)
		LS_TRY(ls_floats_new(&n->kept, x->size.kept, "sums of gradients"));
	return make_messages(x);
}

void ls_norm_pass_release(ls_exchange *x)
{
	ls_norm_pass *n = &x->norm_pass;

	free(n->in);
	free(n->out);
	ls_floats_free(n->kept, x->size.kept);
	for (int pass = 0; pass < LS_NORM_PASSES_MAX; pass++) {
		free(n->norms[pass].packed);
		free(n->norms[pass].all);
		free(n->norms[pass].begin);
		free(n->norms[pass].at);
	}
}
