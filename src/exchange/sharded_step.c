/*
 * sharded_step.c - a synchronous step of shards with owners: what allreduce and ps share.
 *
 *     begin             this node's shards expect the partial sums of the step, workers expect all new values
 *     send              the node's partial sums of a bucket go to the owners
 *     partial_arrived   when the last partial sum of a shard is here, it can be summed and updated
 *     sum_block         partial sums of all nodes, in tree order
 *     shard_updated     the new values go to all nodes; the shard turns to the next step if that has begun
 */
#include "exchange/exchange_internal.h"

/* `owners` nodes from `first_owner` on own a shard of every bucket each; partial sums are those of the tree. */
void ls_sharded_arrange(ls_exchange *x, int first_owner, int owners)
{
	const ls_exchange_options *o = &x->o;
	int64_t partials = o->scattered ? o->microbatches : ls_summation_buffers_any(o->microbatches, 1, 1).outputs;
	int64_t inputs = partials * x->workers;

	x->first_owner = first_owner;
	x->owners = owners;
	x->group = x->nodes;
	x->inputs = (int)(inputs < o->microbatches ? inputs : o->microbatches);
}

ls_status ls_sharded_init(ls_exchange *x)
{
	LS_TRY(ls_reduce_scatter_init(x));
	return ls_all_gather_init(x);
}

/* The partial sums of the step that this shard sums now: those of other nodes are expected. */
static void expect_partials(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];
	const ls_summation *sum = ls_exchange_summation(x, b->shard_step);

	b->expecting = 1;
	b->awaited = sum->computes[x->node];
	for (int i = 0; i < sum->total_fold.inputs; i++) {
		const ls_summation_partial *partial = &sum->partial[i];
		if (partial->node == x->node)
			continue;
		b->awaited++;
		ls_reduce_scatter_expect(x, bucket, i, partial->row, partial->node);
	}
}

void ls_sharded_begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	(void)assign;
	for (int b = 0; b < x->partition.buckets; b++) {
		const ls_bucket_state *s = &x->bucket[b];
		if (s->begin < s->end && !s->expecting && s->shard_step == x->step)
			expect_partials(x, b);
	}
	ls_all_gather_expect(x);
	ls_norm_pass_expect(x);
}

/* All partial sums of the own shard are here, and its last values have left: it can be summed and updated. (A node
 * without micro-batches may be late in taking values, for no node waits for its partial sums.) */
static void publish_when_free(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];
	if (!b->expecting || b->awaited > 0 || b->leaving > 0)
		return;
	b->expecting = 0;
	ls_exchange_publish_shard(x, bucket);
}

void ls_sharded_partial_arrived(ls_exchange *x, int bucket, int node)
{
	(void)node;
	x->bucket[bucket].awaited--;
	publish_when_free(x, bucket);
}

void ls_sharded_values_sent(ls_exchange *x, int bucket)
{
	x->bucket[bucket].leaving--;
	publish_when_free(x, bucket);
}

/* This node's own partial sum, as floats: it is rounded as the others are. */
static const float *own_partial(const ls_exchange *x, const ls_summation *sum, int bucket, int output, size_t begin,
				size_t end, float *expanded)
{
	const ls_codec *codec = x->bucket[bucket].codec;
	const void *at = ls_exchange_output(x, sum, bucket, output, begin);

	if (!codec->decode)
		return at;
	codec->decode(expanded, at, end - begin);
	return expanded;
}

const float *ls_sharded_sum_block(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part)
{
	const ls_summation *sum = ls_exchange_summation(x, x->bucket[bucket].shard_step);
	const ls_fold *fold = &sum->total_fold;

	for (int i = 0; i < fold->inputs; i++) {
		const ls_summation_partial *partial = &sum->partial[i];
		int own = partial->row < 0;
		float *expanded = part->expanded;
		if (expanded)
			expanded += (size_t)(own ? x->rows + partial->output : partial->row) * x->partition.block;
		part->inputs[i] = own ? own_partial(x, sum, bucket, partial->output, begin, end, expanded)
				      : ls_reduce_scatter_received(x, bucket, i, partial->row, begin, end, expanded);
	}
	if (fold->inputs == 1)
		return part->inputs[0];
	ls_fold_run(fold, 0, part->inputs, end - begin, part->sums, part->scratch);
	return part->sums;
}

void ls_sharded_shard_updated(ls_exchange *x, int bucket)
{
	ls_bucket_state *b = &x->bucket[bucket];

	ls_all_gather_send(x, bucket);
	b->shard_step++;
	if (b->shard_step == x->step)
		expect_partials(x, bucket);
	ls_exchange_values_arrived(x, bucket, x->owner);
}
