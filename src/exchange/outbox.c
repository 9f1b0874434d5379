/*
 * outbox.c - messages between nodes: partial sums to the owners of shards, and new values back.
 *
 * Push and pull of a bucket have tags of their own, so that messages of a bucket from one node to another are met in
 * the order they are sent: a node's partial sums first to last, then the next step's. The urgency of either is the
 * bucket's place in forward order: what the next forward pass reads first goes first, be it still on its way up or
 * already on its way down.
 *
 * But nothing goes before what belongs to an older step, or nodes would wait for each other in a circle: a node takes
 * no partial sum of a step that it has not begun, a partial sum that is not taken fills the window, and what is behind
 * it may be the very values that the node must have to begin. With older steps first that cannot be, for all messages
 * of a step have been posted, by all nodes, before anybody posts one of the next: its first are pushes, and who pushes
 * has all new values of the step before, be it for its forward pass or, the extra ones, because it waits for them. With
 * staleness every message is expected before it is posted: a server always expects a worker's next partial sum, a
 * worker the answers to all it has pushed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exchange/bf16.h"
#include "exchange/inside.h"

/* Two tags a bucket; the last of the exchange's is that of norms (norms.c). */
enum { TAG_PUSH = 0, TAG_PULL = 1, BUCKETS_MOST = (LS_TAG_COLLECT - 1) / 2 };

static void start(ls_outbox *outbox, ls_load load)
{
	outbox->message.urgency = (int64_t)load.step * (BUCKETS_MOST + 2) + outbox->rank;
	outbox->message.buffer = load.buffer;
	outbox->message.bytes = load.bytes;
	ls_comm_post(outbox->exchange->o.comm, &outbox->message);
}

void ls_outbox_post(ls_outbox *outbox, ls_load load)
{
	for (;;) {
		int at_home = 0, under_way = 1;
		if (atomic_compare_exchange_strong(&outbox->state, &at_home, 1)) {
			start(outbox, load);
			return;
		}
		outbox->next = load;
		if (atomic_compare_exchange_strong(&outbox->state, &under_way, 2) || under_way == 2)
			return; /* wanted twice only when a failed communication thread brings nothing home any more */
	}
}

/* The message has arrived and was seen to. */
void ls_outbox_home(ls_outbox *outbox)
{
	int under_way = 1;
	if (atomic_compare_exchange_strong(&outbox->state, &under_way, 0))
		return;
	ls_load next = outbox->next;
	atomic_store(&outbox->state, 1);
	start(outbox, next);
}

static void tell(ls_outbox *outbox, ls_exchange_act act)
{
	const ls_exchange *x = outbox->exchange;
	if (x->o.act)
		x->o.act(x->o.context, act, x->members, outbox->bucket, outbox->message.posted, ls_clock_seconds());
}

/* All partial sums of the own shard are here, and its last values have left: it can be folded and updated. (A node
 * without micro-batches may be late in taking values, for nobody waits for its partial sums.) */
static void publish_when_free(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];
	if (!b->armed || b->awaited > 0 || b->leaving > 0)
		return;
	b->armed = 0;
	ls_exchange_publish_shard(x, bucket);
}

static void count_partial(ls_exchange *x, int bucket)
{
	x->bucket[bucket].awaited--;
	publish_when_free(x, bucket);
}

static void partial_done(void *context, ls_message *message)
{
	ls_outbox *outbox = context;
	ls_exchange *x = outbox->exchange;

	(void)message;
	if (x->o.library_sum)
		tell(outbox, LS_ACT_PUSH);
	ls_outbox_home(outbox);
	pthread_mutex_lock(&x->lock);
	if (x->stale)
		ls_stale_came(x, outbox->bucket, outbox->node);
	else
		count_partial(x, outbox->bucket);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static void partial_sent(void *context, ls_message *message)
{
	(void)message;
	tell(context, LS_ACT_PUSH);
	ls_outbox_home(context);
}

static void values_sent(void *context, ls_message *message)
{
	ls_outbox *outbox = context;
	ls_exchange *x = outbox->exchange;

	(void)message;
	tell(outbox, LS_ACT_PULL);
	ls_outbox_home(outbox);
	pthread_mutex_lock(&x->lock);
	x->bucket[outbox->bucket].leaving--;
	publish_when_free(x, outbox->bucket);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

float *ls_exchange_value_at(const ls_exchange *x, size_t at)
{
	return at < x->plan.extra_begin ? x->o.params + at : x->o.state + (at - x->plan.extra_begin);
}

/* A shard's floats, without the padding that only the exchange's own stores have. */
size_t ls_exchange_value_count(const ls_exchange *x, size_t begin, size_t end)
{
	size_t limit = begin < x->plan.extra_begin ? x->plan.live : x->plan.extra_begin + x->plan.extra;
	end = end < limit ? end : limit;
	return begin < end ? end - begin : 0;
}

/* New values of owner o's shard are in their place. */
static void arrived(ls_exchange *x, int bucket, int o)
{
	atomic_fetch_add(&x->bucket[bucket].arrivals[o], 1);
	ls_exchange_notify(x);
}

/* bf16 values go back as differences; a server that answers workers one by one cannot know what each of them has. */
static int pulls_deltas(const ls_exchange *x, int bucket)
{
	return ls_exchange_is_bf16(x, bucket) && x->o.staleness == 0;
}

static void values_done(void *context, ls_message *message)
{
	ls_outbox *outbox = context;
	ls_exchange *x = outbox->exchange;
	size_t begin, end;

	if (pulls_deltas(x, outbox->bucket)) {
		ls_partition_shard(&x->plan, outbox->bucket, outbox->node - x->first_owner, &begin, &end);
		ls_bf16_add(ls_exchange_value_at(x, begin), message->buffer, ls_exchange_value_count(x, begin, end));
	}
	ls_outbox_home(outbox);
	arrived(x, outbox->bucket, outbox->node - x->first_owner);
}

ls_outbox *ls_exchange_push_at(ls_exchange *x, int bucket, int owner, int output)
{
	return &x->push_out[((size_t)bucket * (size_t)x->plan.owners + (size_t)owner) * (size_t)x->outputs +
			    (size_t)output];
}

float *ls_exchange_incoming(const ls_exchange *x, int bucket, int row)
{
	return x->incoming + (size_t)row * x->own + x->bucket[bucket].own_offset;
}

void ls_exchange_expect_partial(ls_exchange *x, int bucket, int input, int row, int node)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	ls_outbox *outbox = &x->push_in[(size_t)bucket * (size_t)x->inputs + (size_t)input];
	size_t width = ls_exchange_is_bf16(x, bucket) ? sizeof(uint16_t) : sizeof(float);

	outbox->message.peer = outbox->node = node;
	ls_outbox_post(outbox, (ls_load){ .buffer = ls_exchange_incoming(x, bucket, row),
					  .bytes = (b->end - b->begin) * width,
					  .step = b->shard_step });
}

/* The partial sums of the step that this shard sums now: those of other nodes are expected. */
static void arm(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];
	const ls_round *round = &x->rounds[b->shard_step & 1];

	b->armed = 1;
	b->awaited = x->o.library_sum || round->computes[x->node];
	for (int i = 0; i < round->combine.inputs && !x->o.library_sum; i++) {
		if (round->partial[i].node == x->node)
			continue;
		b->awaited++;
		ls_exchange_expect_partial(x, bucket, i, round->partial[i].row, round->partial[i].node);
	}
}

static void expect_values(ls_exchange *x)
{
	for (int b = 0; b < x->plan.buckets; b++) {
		for (int o = 0; o < x->plan.owners; o++) {
			size_t begin, end;
			ls_partition_shard(&x->plan, b, o, &begin, &end);
			if (!x->bucket[b].comes[o] || x->first_owner + o == x->node)
				continue;
			int half = pulls_deltas(x, b);
			void *to = half ? (void *)(x->delta_in[o] + x->bucket[b].begin_of[o])
					: ls_exchange_value_at(x, begin);
			size_t width = half ? sizeof(uint16_t) : sizeof(float);
			ls_outbox_post(&x->pull_in[(size_t)b * (size_t)x->plan.owners + (size_t)o],
				       (ls_load){ .buffer = to,
						  .bytes = ls_exchange_value_count(x, begin, end) * width,
						  .step = x->step });
		}
	}
}

void ls_exchange_expect(ls_exchange *x)
{
	if (x->stale) {
		if (x->step == x->first)
			ls_stale_expect(x);
		return;
	}
	for (int b = 0; b < x->plan.buckets; b++) {
		const ls_bucket_state *s = &x->bucket[b];
		if (s->begin < s->end && !s->armed && s->shard_step == x->step && x->nodes > 1)
			arm(x, b);
	}
	if (x->nodes > 1 && !x->o.library_sum)
		expect_values(x);
	if (x->nodes > 1 && x->o.rounds > 0 && !x->o.library_sum)
		ls_exchange_arm_norms(x);
}

/* Library sums start in the same order on all nodes: from the last bucket down, the extra one at the end. */
static void push_sums(ls_exchange *x, int bucket)
{
	const ls_round *round = &x->rounds[x->step & 1];

	x->summable[bucket] = 1;
	while (x->next_sum >= 0 && x->summable[x->next_sum]) {
		int b = x->next_sum;
		const ls_bucket *cut = &x->plan.bucket[b];
		x->summable[b] = 0;
		ls_outbox_post(ls_exchange_push_at(x, b, 0, 0),
			       (ls_load){ .buffer = ls_exchange_output(x, round, b, 0, cut->begin),
					  .bytes = (cut->end - cut->begin) * sizeof(float),
					  .step = x->step });
		x->next_sum = b == x->plan.buckets - 1 ? -1 : b > 0 ? b - 1 : x->plan.buckets - 1;
	}
}

/* The last step's messages have arrived, or their values would not be here; the communication thread may not have
 * noticed yet. Were one posted again before that, it would fall behind the next partial sum of the same bucket. Not
 * under the lock: the communication thread may want it first. */
static void await_home(ls_exchange *x, int bucket)
{
	for (int i = 0; i < x->plan.owners * x->outputs; i++) {
		const ls_outbox *outbox = ls_exchange_push_at(x, bucket, 0, i);
		while (atomic_load(&outbox->state) != 0 && !ls_comm_has_failed(x->o.comm))
			usleep(20);
	}
}

int ls_exchange_partials_for(const ls_exchange *x, int bucket, int o, size_t *begin, size_t *end)
{
	ls_partition_shard(&x->plan, bucket, o, begin, end);
	if (*begin == *end || x->first_owner + o == x->node)
		return 0;
	return x->o.staleness > 0 ? 1 : x->rounds[x->step & 1].gather.outputs;
}

static void push_partials(ls_exchange *x, int bucket)
{
	const ls_round *round = &x->rounds[x->step & 1];

	for (int k = 1; k <= x->plan.owners; k++) { /* not all nodes to the same owner first */
		int o = (x->node + k) % x->plan.owners;
		size_t begin, end;
		int partials = ls_exchange_partials_for(x, bucket, o, &begin, &end);
		for (int j = 0; j < partials; j++) {
			ls_outbox *outbox = ls_exchange_push_at(x, bucket, o, j);
			ls_outbox_post(outbox, (ls_load){ .buffer = ls_exchange_output(x, round, bucket, j, begin),
							  .bytes = outbox->packed,
							  .step = x->step });
		}
	}
	if (x->bucket[bucket].begin < x->bucket[bucket].end)
		count_partial(x, bucket);
}

void ls_exchange_push(ls_exchange *x, int bucket)
{
	await_home(x, bucket);
	if (!x->o.library_sum)
		ls_exchange_pack(x, bucket);
	pthread_mutex_lock(&x->lock);
	if (x->o.library_sum)
		push_sums(x, bucket);
	else
		push_partials(x, bucket);
	pthread_mutex_unlock(&x->lock);
	atomic_fetch_add(&x->gathered, 1);
	ls_exchange_notify(x);
}

void ls_exchange_answer(ls_exchange *x, int bucket, int node, void *values)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	size_t width = pulls_deltas(x, bucket) ? sizeof(uint16_t) : sizeof(float);

	x->bucket[bucket].leaving++;
	ls_outbox_post(&x->pull_out[(size_t)bucket * (size_t)x->nodes + (size_t)node],
		       (ls_load){ .buffer = values,
				  .bytes = ls_exchange_value_count(x, b->begin, b->end) * width,
				  .step = b->shard_step });
}

static void pull(ls_exchange *x, int bucket)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	void *from =
		pulls_deltas(x, bucket) ? (void *)(x->delta_out + b->own_offset) : ls_exchange_value_at(x, b->begin);

	for (int k = 1; k < x->nodes; k++) {
		int n = (x->node + k) % x->nodes;
		if (n < x->workers || ls_exchange_gets_results(x, bucket))
			ls_exchange_answer(x, bucket, n, from);
	}
}

/* The shard is updated: send it, and turn to the next step's if that has begun. */
static void complete_shard(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];

	b->rounds_done = 0;
	if (x->nodes > 1 && !x->o.library_sum)
		pull(x, bucket);
	b->shard_step++;
	if (x->nodes > 1 && b->shard_step == x->step)
		arm(x, bucket);
	arrived(x, bucket, x->owner);
}

void ls_exchange_shard_summed(ls_exchange *x, int bucket)
{
	const ls_bucket_state *b = &x->bucket[bucket];

	pthread_mutex_lock(&x->lock);
	if (x->stale)
		ls_stale_applied(x, bucket);
	else if (bucket == x->plan.buckets - 1 || b->rounds_done == x->o.rounds)
		complete_shard(x, bucket);
	else
		ls_exchange_shard_measured(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* The kinds of messages: who is called when one arrives, and what it is called in errors. */
ls_outbox *ls_outbox_new(ls_exchange *x, size_t count, const ls_message *sample)
{
	ls_outbox *outbox = calloc(count + 1, sizeof(*outbox));
	for (size_t i = 0; outbox && i < count; i++) {
		outbox[i].message = *sample;
		outbox[i].message.context = &outbox[i];
		outbox[i].exchange = x;
	}
	return outbox;
}

void ls_outbox_address(ls_outbox *outbox, int bucket, int peer, int tag)
{
	outbox->bucket = bucket;
	outbox->node = outbox->message.peer = peer;
	outbox->message.tag = tag;
	outbox->message.number = bucket;
	/* The figures that ride along are few and nobody's forward pass asks for them, so they would wait for as long
	 * as the wire is busy; but nobody pushes before those of the last step are here. First, then. */
	outbox->rank = bucket == outbox->exchange->plan.buckets - 1 ? -1 : bucket;
}

static void address_all(ls_exchange *x)
{
	int owners = x->plan.owners;

	for (int b = 0; b < x->plan.buckets; b++) {
		for (int o = 0; o < owners; o++) {
			ls_outbox_address(&x->pull_in[b * owners + o], b, x->first_owner + o, 2 * b + TAG_PULL);
			for (int j = 0; j < x->outputs; j++)
				ls_outbox_address(ls_exchange_push_at(x, b, o, j), b, x->first_owner + o,
						  2 * b + TAG_PUSH);
		}
		for (int i = 0; i < x->inputs; i++)
			ls_outbox_address(&x->push_in[(size_t)b * (size_t)x->inputs + (size_t)i], b, 0,
					  2 * b + TAG_PUSH);
		for (int n = 0; n < x->nodes; n++)
			ls_outbox_address(&x->pull_out[b * x->nodes + n], b, n, 2 * b + TAG_PULL);
	}
}

ls_status ls_exchange_make_outbox(ls_exchange *x)
{
	size_t buckets = (size_t)x->plan.buckets, owners = (size_t)x->plan.owners, nodes = (size_t)x->nodes;
	int sum = x->o.library_sum;
	ls_message push = { .outgoing = sum ? 2 : 1,
			    .what = "push of bucket",
			    .done = sum ? partial_done : partial_sent };
	ls_message partial = { .what = "push of bucket", .done = partial_done, .check = ls_exchange_check_partial };
	ls_message values = { .outgoing = 1, .what = "pull of bucket", .done = values_sent };
	ls_message new_values = { .what = "pull of bucket", .done = values_done };

	partial.shorter = x->grain > 0;
	if (x->nodes == 1)
		return LS_OK;
	if (buckets > BUCKETS_MOST)
		return ls_fail(LS_EINVALID,
			       "the gradient falls into %zu buckets; at most %d can be: raise options.bucket_bytes",
			       buckets, BUCKETS_MOST);
	x->push_out = ls_outbox_new(x, buckets * owners * (size_t)x->outputs, &push);
	x->push_in = ls_outbox_new(x, buckets * (size_t)x->inputs, &partial);
	x->pull_out = ls_outbox_new(x, buckets * nodes, &values);
	x->pull_in = ls_outbox_new(x, buckets * owners, &new_values);
	if (!x->push_out || !x->push_in || !x->pull_out || !x->pull_in)
		return ls_fail(LS_EMEMORY, "no memory for the messages of %zu buckets", buckets);
	address_all(x);
	return ls_exchange_make_norms(x);
}

void ls_exchange_free_outbox(ls_exchange *x)
{
	ls_exchange_free_norms(x);
	free(x->pull_in);
	free(x->pull_out);
	free(x->push_in);
	free(x->push_out);
}
