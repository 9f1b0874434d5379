/*
 * all_gather.c - new values from the owners of shards to the nodes that need them, bucket by bucket.
 *
 * Parameters go to every worker, results of step statistics to every node. Values arrive where forward reads them, or,
 * by a codec that sends changes, beside them, and are added there.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/exchange_internal.h"

float *ls_exchange_value_at(const ls_exchange *x, size_t at)
{
	size_t statistics = x->partition.statistics_begin;
	return at < statistics ? x->o.params + at : x->o.state + (at - statistics);
}

/* A shard's floats, without the padding that only the exchange's own stores have. */
size_t ls_exchange_value_count(const ls_exchange *x, size_t begin, size_t end)
{
	const ls_partition *p = &x->partition;
	size_t limit = begin < p->statistics_begin ? p->reachable : p->statistics_begin + p->statistics;
	end = end < limit ? end : limit;
	return begin < end ? end - begin : 0;
}

/* Whether values of the bucket travel as changes. */
static int sends_changes(const ls_exchange *x, int bucket)
{
	return x->all_gather.codec->encode_change != NULL && !ls_exchange_is_statistics(x, bucket);
}

static size_t width_of(const ls_exchange *x, int bucket)
{
	return sends_changes(x, bucket) ? x->all_gather.codec->width : sizeof(float);
}

static unsigned char *change_at(const ls_exchange *x, int bucket, size_t begin)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	return x->all_gather.change_out + (b->own_offset + (begin - b->begin)) * x->all_gather.codec->width;
}

void ls_all_gather_encode(ls_exchange *x, int bucket, size_t begin, size_t end)
{
	if (sends_changes(x, bucket))
		x->all_gather.codec->encode_change(change_at(x, bucket, begin), x->o.params + begin,
						   x->o.master + begin, ls_exchange_value_count(x, begin, end));
}

static void values_received(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;
	int o = slot->node - x->first_owner;
	size_t begin, end;

	if (sends_changes(x, slot->bucket)) {
		ls_partition_shard(&x->partition, slot->bucket, o, &begin, &end);
		x->all_gather.codec->add_change(ls_exchange_value_at(x, begin), message->buffer,
						ls_exchange_value_count(x, begin, end));
	}
	ls_send_slot_done(slot);
	ls_exchange_values_arrived(x, slot->bucket, o);
}

static void values_sent(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;

	(void)message;
	if (x->o.trace)
		x->o.trace(x->o.context, LS_EVENT_ALL_GATHER, x->members, slot->bucket, slot->message.posted,
			   ls_clock_seconds());
	ls_send_slot_done(slot);
	pthread_mutex_lock(&x->lock);
	ls_sharded_values_sent(x, slot->bucket);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

void ls_all_gather_expect(ls_exchange *x)
{
	const ls_all_gather *a = &x->all_gather;

	for (int b = 0; b < x->partition.buckets; b++)
		for (int o = 0; o < x->owners; o++) {
			size_t begin, end, i = (size_t)b * (size_t)x->owners + (size_t)o;
			if (!x->bucket[b].comes[o] || o == x->owner)
				continue;
			ls_partition_shard(&x->partition, b, o, &begin, &end);
			void *to = sends_changes(x, b)
					   ? (void *)(a->change_in[o] + a->change_begin[i] * a->codec->width)
					   : ls_exchange_value_at(x, begin);
			ls_send_slot_post(&a->in[i], (ls_send_load){ .buffer = to,
								     .bytes = ls_exchange_value_count(x, begin, end) *
									      width_of(x, b),
								     .step = x->step });
		}
}

void ls_all_gather_send_to(ls_exchange *x, int bucket, int node, void *values)
{
	ls_bucket_state *b = &x->bucket[bucket];

	b->leaving++;
	ls_send_slot_post(&x->all_gather.out[(size_t)bucket * (size_t)x->group + (size_t)node],
			  (ls_send_load){ .buffer = values,
					  .bytes = ls_exchange_value_count(x, b->begin, b->end) * width_of(x, bucket),
					  .step = b->shard_step });
}

void ls_all_gather_send(ls_exchange *x, int bucket)
{
	size_t begin = x->bucket[bucket].begin;
	void *values = sends_changes(x, bucket) ? (void *)change_at(x, bucket, begin) : ls_exchange_value_at(x, begin);

	for (int k = 1; k < x->group; k++) { /* not all owners to the same node first */
		int n = (x->node + k) % x->group;
		if (n < x->workers || ls_exchange_is_statistics(x, bucket))
			ls_all_gather_send_to(x, bucket, n, values);
	}
}

ls_status ls_all_gather_count(ls_exchange *x)
{
	ls_all_gather *a = &x->all_gather;
	size_t owners = (size_t)x->owners;

	a->codec = ls_strategy_needs_master(x->strategy, x->codec) ? x->codec : &ls_codec_fp32;
	a->change_count = calloc(owners, sizeof(*a->change_count));
	a->change_begin = calloc((size_t)x->partition.buckets * owners, sizeof(*a->change_begin));
	if (!a->change_count || !a->change_begin)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's buckets");
	for (int b = 0; b < x->partition.buckets; b++)
		for (int o = 0; o < x->owners; o++) {
			size_t begin, end;
			ls_partition_shard(&x->partition, b, o, &begin, &end);
			a->change_begin[(size_t)b * owners + (size_t)o] = a->change_count[o];
			a->change_count[o] += end - begin;
		}
	return LS_OK;
}

static ls_status make_changes(ls_exchange *x)
{
	ls_all_gather *a = &x->all_gather;

	if (!a->codec->encode_change)
		return LS_OK;
	a->change_out = calloc(x->own + 1, a->codec->width);
	a->change_in = calloc((size_t)x->owners, sizeof(*a->change_in));
	if (!a->change_out || !a->change_in)
		return ls_fail(LS_EMEMORY, "no memory for the codec %s", a->codec->name);
	for (int o = 0; o < x->owners; o++) {
		a->change_in[o] = calloc(a->change_count[o] + 1, a->codec->width);
		if (!a->change_in[o])
			return ls_fail(LS_EMEMORY, "no memory for the codec %s", a->codec->name);
	}
	return LS_OK;
}

ls_status ls_all_gather_init(ls_exchange *x)
{
	ls_all_gather *a = &x->all_gather;
	size_t buckets = (size_t)x->partition.buckets;
	ls_message own = { .outgoing = 1, .what = "all-gather of bucket", .done = values_sent };
	ls_message others = { .what = "all-gather of bucket", .done = values_received };

	LS_TRY(make_changes(x));
	a->out = ls_send_slots_new(x, buckets * (size_t)x->group, &own);
	a->in = ls_send_slots_new(x, buckets * (size_t)x->owners, &others);
	if (!a->out || !a->in)
		return ls_fail(LS_EMEMORY, "no memory for the messages of %zu buckets", buckets);
	for (int b = 0; b < x->partition.buckets; b++) {
		for (int o = 0; o < x->owners; o++)
			ls_send_slot_address(&a->in[b * x->owners + o], b, x->first_owner + o,
					     2 * b + LS_TAG_ALL_GATHER);
		for (int n = 0; n < x->group; n++)
			ls_send_slot_address(&a->out[b * x->group + n], b, n, 2 * b + LS_TAG_ALL_GATHER);
	}
	return LS_OK;
}

void ls_all_gather_release(ls_exchange *x)
{
	ls_all_gather *a = &x->all_gather;

	free(a->in);
	free(a->out);
	for (int o = 0; a->change_in && o < x->owners; o++)
		free(a->change_in[o]);
	free(a->change_in);
	free(a->change_out);
	free(a->change_begin);
	free(a->change_count);
}
