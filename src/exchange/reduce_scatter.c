/*
 * reduce_scatter.c - partial sums from nodes to the owners of shards, bucket by bucket.
 *
 * A partial sum is sent out of the memory it was made in. A sparse codec packs it there, in the thread that sends the
 * bucket, and owners unpack block by block as they add: zeros are written into a cache, never to memory. New values are
 * not packed: Adam moves every parameter that has ever had a gradient.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exchange/codecs/sparse.h"
#include "exchange/exchange_internal.h"

static ls_send_slot *slot_out(ls_exchange *x, int bucket, int owner, int output)
{
	return &x->reduce_scatter.out[((size_t)bucket * (size_t)x->owners + (size_t)owner) * (size_t)x->outputs +
				      (size_t)output];
}

static ls_send_slot *slot_in(const ls_exchange *x, int bucket, int input)
{
	return &x->reduce_scatter.in[(size_t)bucket * (size_t)x->inputs + (size_t)input];
}

/* A message with all of [begin, end). */
static ls_codec_form form_of(const ls_exchange *x, int bucket, size_t begin, size_t end)
{
	return (ls_codec_form){ .count = end - begin,
				.width = x->bucket[bucket].codec->width,
				.grain = x->reduce_scatter.grain };
}

static ls_codec_form own_form(const ls_exchange *x, int bucket)
{
	return form_of(x, bucket, x->bucket[bucket].begin, x->bucket[bucket].end);
}

static float *incoming_at(const ls_exchange *x, int bucket, int row)
{
	return x->reduce_scatter.incoming + (size_t)row * x->own + x->bucket[bucket].own_offset;
}

/* Sending */

static void partial_sent(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	const ls_exchange *x = slot->exchange;

	if (x->o.trace)
		x->o.trace(x->o.context, LS_EVENT_REDUCE_SCATTER, x->members, slot->bucket, message->posted,
			   ls_clock_seconds());
	ls_send_slot_done(slot);
}

/* What goes to owner o, if anything does: how many partial sums of which shard. */
static int partials_for(const ls_exchange *x, int bucket, int o, size_t *begin, size_t *end)
{
	ls_partition_shard(&x->partition, bucket, o, begin, end);
	return *begin == *end || o == x->owner ? 0 : ls_exchange_summation(x, x->step)->node_fold.outputs;
}

/* Where the bitmap of a bucket begins: several may be packed at a time. Parts of a byte are at either end. */
static size_t bitmap_at(const ls_exchange *x, int bucket)
{
	const ls_partition *p = &x->partition;
	size_t begin = bucket < p->buckets ? p->bucket[bucket].begin : p->width;
	return begin / x->reduce_scatter.grain / 8 + 2 * (size_t)bucket;
}

static void pack(ls_exchange *x, int bucket)
{
	const ls_summation *sum = ls_exchange_summation(x, x->step);
	const ls_codec *codec = x->bucket[bucket].codec;

	for (int o = 0; o < x->owners; o++) {
		size_t begin, end;
		int partials = partials_for(x, bucket, o, &begin, &end);
		ls_codec_form form = form_of(x, bucket, begin, end);
		for (int j = 0; j < partials; j++) {
			ls_send_slot *slot = slot_out(x, bucket, o, j);
			slot->packed = form.count * form.width;
			if (codec->pack)
				slot->packed = codec->pack(&form, ls_exchange_output(x, sum, bucket, j, begin),
							   x->reduce_scatter.bitmap + bitmap_at(x, bucket));
		}
	}
}

/* The last step's messages have arrived, or their new values would not be here; the communication thread may not have
 * noticed yet. Were one posted again before that, it would fall behind the next partial sum of the same bucket. */
void ls_reduce_scatter_send(ls_exchange *x, int bucket)
{
	const ls_summation *sum = ls_exchange_summation(x, x->step);

	ls_send_slots_await(slot_out(x, bucket, 0, 0), (size_t)x->owners * (size_t)x->outputs);
	pack(x, bucket);
	pthread_mutex_lock(&x->lock);
	for (int k = 1; k <= x->owners; k++) { /* not all nodes to the same owner first */
		int o = (x->node + k) % x->owners;
		size_t begin, end;
		int partials = partials_for(x, bucket, o, &begin, &end);
		for (int j = 0; j < partials; j++) {
			ls_send_slot *slot = slot_out(x, bucket, o, j);
			ls_send_slot_post(slot, (ls_send_load){ .buffer = ls_exchange_output(x, sum, bucket, j, begin),
								.bytes = slot->packed,
								.step = x->step });
		}
	}
	if (x->bucket[bucket].begin < x->bucket[bucket].end)
		x->strategy->partial_arrived(x, bucket, x->node);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_bucket_done(x);
}

void ls_reduce_scatter_clear(ls_exchange *x, int bucket)
{
	const ls_bucket *cut = &x->partition.bucket[bucket];
	memset(ls_exchange_output(x, ls_exchange_summation(x, x->step), bucket, 0, cut->begin), 0,
	       (cut->end - cut->begin) * x->bucket[bucket].codec->width);
}

/* Receiving */

static void partial_received(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;

	(void)message;
	ls_send_slot_done(slot);
	pthread_mutex_lock(&x->lock);
	x->strategy->partial_arrived(x, slot->bucket, slot->node);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static ls_status check_partial(void *context, const ls_message *message)
{
	const ls_send_slot *slot = context;
	const ls_exchange *x = slot->exchange;
	ls_codec_form form = own_form(x, slot->bucket);

	if (x->bucket[slot->bucket].codec->check(&form, message->buffer, message->arrived) == LS_OK)
		return LS_OK;
	return ls_fail(LS_EMISMATCH, "reduce-scatter of bucket %d from node %d (%s) is damaged: %s", slot->bucket,
		       message->peer, ls_comm_host(x->o.comm, message->peer), ls_last_error());
}

void ls_reduce_scatter_expect(ls_exchange *x, int bucket, int input, int row, int node)
{
	ls_send_slot *slot = slot_in(x, bucket, input);
	ls_codec_form form = own_form(x, bucket);

	slot->message.peer = slot->node = node;
	ls_send_slot_post(slot, (ls_send_load){ .buffer = incoming_at(x, bucket, row),
						.bytes = form.count * form.width,
						.step = x->bucket[bucket].shard_step });
}

const float *ls_reduce_scatter_received(const ls_exchange *x, int bucket, int input, int row, size_t begin, size_t end,
					float *expanded)
{
	const ls_codec *codec = x->bucket[bucket].codec;
	const ls_message *message = &slot_in(x, bucket, input)->message;
	ls_codec_form form = own_form(x, bucket);
	size_t at = begin - x->bucket[bucket].begin;
	const void *from = (const unsigned char *)incoming_at(x, bucket, row) + at * form.width;

	if (codec->unpack && message->arrived < form.count * form.width)
		codec->unpack(&form, message->buffer, message->arrived, at, end - x->bucket[bucket].begin, expanded);
	else if (codec->decode)
		codec->decode(expanded, from, end - begin);
	else
		return from;
	return expanded;
}

/* Memory */

static ls_status make_slots(ls_exchange *x)
{
	ls_reduce_scatter *r = &x->reduce_scatter;
	size_t buckets = (size_t)x->partition.buckets;
	ls_message own = { .outgoing = 1, .what = "reduce-scatter of bucket", .done = partial_sent };
	ls_message others = { .what = "reduce-scatter of bucket", .done = partial_received };

	r->out = ls_send_slots_new(x, buckets * (size_t)x->owners * (size_t)x->outputs, &own);
	r->in = ls_send_slots_new(x, buckets * (size_t)x->inputs, &others);
	if (!r->out || !r->in)
		return ls_fail(LS_EMEMORY, "no memory for the messages of %zu buckets", buckets);
	for (int b = 0; b < x->partition.buckets; b++) {
		for (int o = 0; o < x->owners; o++)
			for (int j = 0; j < x->outputs; j++)
				ls_send_slot_address(slot_out(x, b, o, j), b, x->first_owner + o,
						     2 * b + LS_TAG_REDUCE_SCATTER);
		for (int i = 0; i < x->inputs; i++) {
			ls_send_slot *slot = slot_in(x, b, i);
			ls_send_slot_address(slot, b, 0, 2 * b + LS_TAG_REDUCE_SCATTER);
			slot->message.shorter = x->bucket[b].codec->pack != NULL;
			slot->message.check = x->bucket[b].codec->check ? check_partial : NULL;
		}
	}
	return LS_OK;
}

ls_status ls_reduce_scatter_init(ls_exchange *x)
{
	ls_reduce_scatter *r = &x->reduce_scatter;

	if (x->size.incoming > 0)
		LS_TRY(ls_floats_new(&r->incoming, x->size.incoming, "gradients of other nodes"));
	r->grain = ls_sparse_grain(x->o.block);
	if (x->codec->pack) {
		r->bitmap = calloc(bitmap_at(x, x->partition.buckets), 1);
		if (!r->bitmap)
			return ls_fail(LS_EMEMORY, "no memory to pack the messages of the exchange");
	}
	return make_slots(x);
}

void ls_reduce_scatter_release(ls_exchange *x)
{
	ls_reduce_scatter *r = &x->reduce_scatter;

	free(r->in);
	free(r->out);
	free(r->bitmap);
	ls_floats_free(r->incoming, x->size.incoming);
}
