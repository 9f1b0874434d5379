/*
 * mpi.c - the MPI library's own all-reduce: the baseline that strategies of our own are compared with.
 *
 * Every node adds up what its devices computed, in order, the library sums over all nodes in place, and every node
 * updates everything. The sums have the bits of the library's order, the same on all nodes but not those of other
 * layouts.
 *
 * Invariants
 *  1. Sums start in the same order on all nodes, as MPI demands: from the last bucket down, statistics at the end. So
 *     no two steps are under way at once.
 *  2. A node without micro-batches takes part with zeros.
 *
 * Bytes: what the library's algorithm moves; optimizer state and update on every node.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/exchange_internal.h"

typedef struct mpi_state {
	ls_send_slot *sum;    /* (buckets) */
	unsigned char *ready; /* (buckets) added up here, waiting for its turn */
	int next;             /* the bucket whose turn it is; -1: all are started */
} mpi_state;

static void arrange(ls_exchange *x)
{
	x->owners = x->group = 1;
	x->first_owner = x->node;
	x->outputs = x->inputs = 1;
	x->rows = 0;
}

static void begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	mpi_state *s = x->strategy_state;

	(void)assign;
	s->next = x->partition.buckets > 1 ? x->partition.buckets - 2 : 0;
}

static void start_sum(ls_exchange *x, int bucket)
{
	mpi_state *s = x->strategy_state;
	const ls_bucket *cut = &x->partition.bucket[bucket];
	void *values = ls_exchange_output(x, ls_exchange_summation(x, x->step), bucket, 0, cut->begin);

	s->ready[bucket] = 0;
	ls_send_slot_post(
		&s->sum[bucket],
		(ls_send_load){ .buffer = values, .bytes = (cut->end - cut->begin) * sizeof(float), .step = x->step });
}

static void send(ls_exchange *x, int bucket)
{
	mpi_state *s = x->strategy_state;
	int last = x->partition.buckets - 1;

	ls_send_slots_await(&s->sum[bucket], 1);
	pthread_mutex_lock(&x->lock);
	s->ready[bucket] = 1;
	while (s->next >= 0 && s->ready[s->next]) {
		start_sum(x, s->next);
		s->next = s->next == last ? -1 : s->next > 0 ? s->next - 1 : last;
	}
	pthread_mutex_unlock(&x->lock);
	ls_exchange_bucket_done(x);
}

static void idle(ls_exchange *x)
{
	for (int b = x->partition.buckets - 1; b >= 0; b--) {
		ls_reduce_scatter_clear(x, b);
		send(x, b);
	}
}

static void summed(void *context, ls_message *message)
{
	ls_send_slot *slot = context;
	ls_exchange *x = slot->exchange;

	if (x->o.trace)
		x->o.trace(x->o.context, LS_EVENT_REDUCE_SCATTER, x->members, slot->bucket, message->posted,
			   ls_clock_seconds());
	ls_send_slot_done(slot);
	pthread_mutex_lock(&x->lock);
	ls_exchange_publish_shard(x, slot->bucket);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static const float *sum_block(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part)
{
	(void)end;
	(void)part;
	return ls_exchange_output(x, ls_exchange_summation(x, x->bucket[bucket].shard_step), bucket, 0, begin);
}

static void shard_updated(ls_exchange *x, int bucket)
{
	x->bucket[bucket].shard_step++;
	ls_exchange_values_arrived(x, bucket, 0);
}

static ls_status init(ls_exchange *x)
{
	size_t buckets = (size_t)x->partition.buckets;
	ls_message sum = { .outgoing = 2, .what = "all-reduce of bucket", .done = summed };
	mpi_state *s = x->strategy_state = calloc(1, sizeof(*s));

	if (!s)
		return ls_fail(LS_EMEMORY, "no memory for the sums of %zu buckets", buckets);
	s->sum = ls_send_slots_new(x, buckets, &sum);
	s->ready = calloc(buckets, 1);
	if (!s->sum || !s->ready)
		return ls_fail(LS_EMEMORY, "no memory for the sums of %zu buckets", buckets);
	for (int b = 0; b < x->partition.buckets; b++)
		ls_send_slot_address(&s->sum[b], b, x->node, 2 * b);
	return LS_OK;
}

static void release(ls_exchange *x)
{
	mpi_state *s = x->strategy_state;

	free(s->ready);
	free(s->sum);
	free(s);
}

const ls_strategy ls_strategy_mpi = { .info = { .name = "mpi",
						.title = "MPI",
						.summary =
							"the MPI library's own sum; every node updates all parameters",
						.unplanned = "the MPI library chooses how it sums, and a plan "
							     "simulates only exchanges of Lockstep's own" },
				      .synchronous = 1,
				      .replicated = 1,
				      .in_order = 1,
				      .arrange = arrange,
				      .init = init,
				      .release = release,
				      .begin = begin,
				      .idle = idle,
				      .bucket_ready = ls_exchange_sum_node,
				      .do_own_work = ls_exchange_sum_own_blocks,
				      .send = send,
				      .sum_block = sum_block,
				      .shard_updated = shard_updated,
				      .source = ls_exchange_common_source };
