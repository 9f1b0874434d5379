/*
 * ps_async.c - parameter servers that do not wait for all workers.
 *
 * A server updates a bucket as soon as one worker's sums of it are there, and sends the new values back to that worker
 * alone: a fast worker does not wait for a slow one, up to a limit. The answer to a worker's statistics of step r is
 * held back until every worker has completed r + 2 - staleness steps. (With the answer to step r a worker can be at
 * work on step r + 2: it waits for answers to statistics before it writes those of the step after the next.)
 *
 * What a worker sends is its mean gradient: there is no common step whose samples could be counted.
 *
 * Invariants
 *  1. A bucket's shard is changed by one worker's sums at a time, in the order they came.
 *  2. What is sent is a copy: the shard may change again before the message has left. So values travel exactly, never
 *     as changes: a server does not know what each worker has.
 *  3. Every message is expected before it is posted: a server always expects every worker's next sums.
 *  4. The bits depend on the order of arrival. Every sample still counts once.
 *
 * Bytes as with ps: M out and M in per worker and step.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/exchange_internal.h"

/* What a server keeps for each of its buckets. */
typedef struct async_bucket {
	int *waiting; /* (workers) ring of those whose sums are here */
	int first, count;
	int worker;       /* the worker whose sums are being applied; -1: none */
	uint64_t *served; /* (workers) steps */
	uint64_t updates; /* of all workers together */
} async_bucket;

typedef struct async_state {
	float scale; /* of this worker's gradient */
	/* of a server */
	async_bucket *bucket; /* (buckets) */
	float **reply;        /* (workers) each (own): values on their way */
	unsigned char *held;  /* (workers) an answer to statistics is held back */
} async_state;

static int is_server(const ls_exchange *x)
{
	return x->node >= x->workers;
}

static void arrange(ls_exchange *x)
{
	x->first_owner = x->workers;
	x->owners = x->o.servers;
	x->group = x->nodes;
	x->outputs = 1;
	x->rows = x->inputs = x->workers;
}

/* Workers */

static void transform(ls_exchange *x, int bucket, float *sums, size_t count)
{
	const async_state *s = x->strategy_state;
	for (size_t i = 0; i < count && !ls_exchange_is_statistics(x, bucket); i++)
		sums[i] *= s->scale;
}

/* A worker without micro-batches sends zeros, for servers count steps. They take the place of the last step's sums,
 * which have left once their answers are here. */
static void idle(ls_exchange *x)
{
	if (is_server(x))
		return;
	ls_exchange_await_step(x, x->step);
	for (int b = x->partition.buckets - 1; b >= 0; b--) {
		ls_reduce_scatter_clear(x, b);
		ls_reduce_scatter_send(x, b);
	}
}

/* Servers */

static void begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	async_state *s = x->strategy_state;

	s->scale = assign->scale;
	if (!is_server(x)) {
		ls_all_gather_expect(x);
		return;
	}
	for (int b = 0; b < x->partition.buckets && x->step == x->first; b++)
		for (int w = 0; w < x->workers && x->bucket[b].begin < x->bucket[b].end; w++)
			ls_reduce_scatter_expect(x, b, w, w, w);
}

static void start_next(ls_exchange *x, int bucket)
{
	async_bucket *b = &((async_state *)x->strategy_state)->bucket[bucket];
	if (b->worker >= 0 || b->count == 0)
		return;
	b->worker = b->waiting[b->first];
	b->first = (b->first + 1) % x->workers;
	b->count--;
	ls_exchange_publish_shard(x, bucket);
}

static void partial_arrived(ls_exchange *x, int bucket, int worker)
{
	async_bucket *b = &((async_state *)x->strategy_state)->bucket[bucket];
	b->waiting[(b->first + b->count++) % x->workers] = worker;
	start_next(x, bucket);
}

static const float *sum_block(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part)
{
	int worker = ((async_state *)x->strategy_state)->bucket[bucket].worker;
	return ls_reduce_scatter_received(x, bucket, worker, worker, begin, end, part->expanded);
}

static ls_exchange_source source(const ls_exchange *x, int bucket)
{
	const async_bucket *b = &((const async_state *)x->strategy_state)->bucket[bucket];
	return (ls_exchange_source){ .node = b->worker,
				     .step = x->first + b->served[b->worker],
				     .updates = b->updates };
}

static uint64_t slowest(const ls_exchange *x, const async_bucket *b)
{
	uint64_t least = UINT64_MAX;
	for (int w = 0; w < x->workers; w++)
		least = b->served[w] < least ? b->served[w] : least;
	return least;
}

/* Answers to statistics that the slowest worker holds up no longer. A worker that has been served n steps waits for the
 * answer to step n - 1. */
static void answer_held(ls_exchange *x, int statistics)
{
	async_state *s = x->strategy_state;
	const async_bucket *b = &s->bucket[statistics];
	uint64_t least = slowest(x, b);

	for (int w = 0; w < x->workers; w++) {
		if (!s->held[w] || least + (uint64_t)x->o.staleness < b->served[w] + 1)
			continue;
		s->held[w] = 0;
		ls_all_gather_send_to(x, statistics, w, s->reply[w] + x->bucket[statistics].own_offset);
	}
}

static void shard_updated(ls_exchange *x, int bucket)
{
	async_state *s = x->strategy_state;
	async_bucket *b = &s->bucket[bucket];
	const ls_bucket_state *shard = &x->bucket[bucket];
	int worker = b->worker;
	float *reply = s->reply[worker] + shard->own_offset;

	memcpy(reply, ls_exchange_value_at(x, shard->begin),
	       ls_exchange_value_count(x, shard->begin, shard->end) * sizeof(float));
	b->worker = -1;
	b->updates++;
	b->served[worker]++;
	ls_reduce_scatter_expect(x, bucket, worker, worker, worker);
	if (ls_exchange_is_statistics(x, bucket)) {
		s->held[worker] = 1;
		answer_held(x, bucket);
	} else {
		ls_all_gather_send_to(x, bucket, worker, reply);
	}
	/* A step of a server is complete when every worker has had it. */
	if (slowest(x, b) > atomic_load(&shard->arrivals[x->owner]))
		ls_exchange_values_arrived(x, bucket, x->owner);
	start_next(x, bucket);
}

/* Memory */

static ls_status make_server(ls_exchange *x, async_state *s)
{
	size_t workers = (size_t)x->workers, buckets = (size_t)x->partition.buckets;

	s->bucket = calloc(buckets, sizeof(*s->bucket));
	s->reply = calloc(workers, sizeof(*s->reply));
	s->held = calloc(workers, 1);
	if (!s->bucket || !s->reply || !s->held)
		return ls_fail(LS_EMEMORY, "no memory for a parameter server of %zu buckets", buckets);
	for (size_t i = 0; i < buckets; i++) {
		async_bucket *b = &s->bucket[i];
		b->worker = -1;
		b->waiting = calloc(workers, sizeof(*b->waiting));
		b->served = calloc(workers, sizeof(*b->served));
		if (!b->waiting || !b->served)
			return ls_fail(LS_EMEMORY, "no memory for a parameter server of %zu buckets", buckets);
	}
	for (size_t w = 0; w < workers; w++)
		LS_TRY(ls_floats_new(&s->reply[w], x->own, "a server's answers"));
	return LS_OK;
}

static ls_status init(ls_exchange *x)
{
	async_state *s = x->strategy_state = calloc(1, sizeof(*s));

	if (!s)
		return ls_fail(LS_EMEMORY, "no memory for the strategy ps-async");
	LS_TRY(ls_sharded_init(x));
	return is_server(x) ? make_server(x, s) : LS_OK;
}

static void release(ls_exchange *x)
{
	async_state *s = x->strategy_state;

	for (int w = 0; s->reply && w < x->workers; w++)
		ls_floats_free(s->reply[w], x->own);
	for (int b = 0; s->bucket && b < x->partition.buckets; b++) {
		free(s->bucket[b].served);
		free(s->bucket[b].waiting);
	}
	free(s->held);
	free(s->reply);
	free(s->bucket);
	free(s);
}

static size_t bytes(const ls_exchange *x)
{
	return is_server(x) ? (size_t)x->workers * x->own * sizeof(float) : 0;
}

const ls_strategy ls_strategy_ps_async = {
	.info = { .name = "ps-async",
		  .title = "PS-async",
		  .summary = "parameter servers, and workers may run a few steps ahead of the slowest",
		  .has_servers = 1,
		  .unplanned = "its workers do not wait for each other, and a plan simulates steps that all nodes "
			       "complete together" },
	.in_order = 1,
	.encodes = 1,
	.overlap = 1,
	.arrange = arrange,
	.init = init,
	.release = release,
	.bytes = bytes,
	.begin = begin,
	.idle = idle,
	.bucket_ready = ls_exchange_sum_node,
	.do_own_work = ls_exchange_sum_own_blocks,
	.transform = transform,
	.send = ls_reduce_scatter_send,
	.partial_arrived = partial_arrived,
	.sum_block = sum_block,
	.shard_updated = shard_updated,
	.source = source
};
