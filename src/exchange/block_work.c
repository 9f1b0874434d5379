/*
 * block_work.c - units of work, one block each: add partial sums, take norms, update.
 *
 * There are two lists of work. `node_work` makes the node's partial sums out of its devices', before they are sent.
 * `update_work` adds the partial sums of all nodes (on one node: of all devices) and calls `update` while the sums are
 * in cache. Blocks are taken by any thread that is free: workers of devices, the communication thread, a thread that
 * waits for a step.
 */
#include "base/clock.h"
#include "exchange/exchange_internal.h"

float *ls_exchange_source_at(const ls_exchange *x, const ls_summation *sum, int input, size_t at)
{
	const ls_summation_source *s = &sum->source[input];
	return x->store[s->device * x->slots + s->slot] + at;
}

/* Whether the node's partial sums are made by adding, encoding or changing something: else they are its devices'. */
static int must_sum(const ls_exchange *x, const ls_summation *sum, int bucket)
{
	return ls_summation_folds(sum) || x->bucket[bucket].codec->encode || x->strategy->transform;
}

/* The first of the stores it is made of, where it may be sent as it is. */
void *ls_exchange_output(const ls_exchange *x, const ls_summation *sum, int bucket, int output, size_t at)
{
	const ls_codec *codec = x->bucket[bucket].codec;

	if (codec->encode || (sum->in_order && must_sum(x, sum, bucket)))
		return (unsigned char *)x->outgoing[output] + at * codec->width;
	return ls_exchange_source_at(x, sum, sum->node_fold.begin[output], at);
}

/* The node's partial sums */

void ls_exchange_sum_node(ls_exchange *x, int bucket)
{
	if (!must_sum(x, ls_exchange_summation(x, x->step), bucket)) {
		x->strategy->send(x, bucket);
		return;
	}
	pthread_mutex_lock(&x->lock);
	ls_worklist_publish(&x->node_work, bucket, (int)x->partition.bucket[bucket].blocks);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static void sum_node_block(ls_exchange *x, int bucket, int unit, int participant)
{
	const ls_summation *sum = ls_exchange_summation(x, x->step);
	const ls_codec *codec = x->bucket[bucket].codec;
	ls_participant *part = &x->part[participant];
	size_t begin, end;
	double start = x->o.trace ? ls_clock_seconds() : 0;

	ls_partition_block(&x->partition, bucket, (size_t)unit, &begin, &end);
	for (int i = 0; i < sum->node_fold.inputs; i++)
		part->inputs[i] = ls_exchange_source_at(x, sum, i, begin);
	for (int j = 0; j < sum->node_fold.outputs; j++) {
		void *out = ls_exchange_output(x, sum, bucket, j, begin);
		float *sums = codec->encode ? part->sums : out;
		ls_fold_run(&sum->node_fold, j, part->inputs, end - begin, sums, part->scratch);
		if (x->strategy->transform)
			x->strategy->transform(x, bucket, sums, end - begin);
		if (codec->encode)
			codec->encode(out, sums, end - begin);
	}
	if (x->o.trace)
		x->o.trace(x->o.context, LS_EVENT_COMBINE, participant, bucket, start, ls_clock_seconds());
	if (ls_worklist_done(&x->node_work, bucket))
		x->strategy->send(x, bucket);
}

void ls_exchange_sum_own_blocks(ls_exchange *x, int participant)
{
	int bucket, unit;
	while (ls_worklist_take_own(&x->node_work, participant, &bucket, &unit))
		sum_node_block(x, bucket, unit, participant);
}

int ls_exchange_sum_any_block(ls_exchange *x, int participant)
{
	int bucket, unit;
	if (!ls_worklist_take_any(&x->node_work, participant, &bucket, &unit))
		return 0;
	sum_node_block(x, bucket, unit, participant);
	return 1;
}

/* The own shards */

void ls_exchange_publish_shard(ls_exchange *x, int bucket)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	size_t units = (b->end - b->begin + x->partition.block - 1) / x->partition.block;
	ls_worklist_publish(&x->update_work, bucket, (int)units);
}

/* All blocks of the own shard have had their norms taken, or are updated. */
static void shard_done(ls_exchange *x, int bucket)
{
	pthread_mutex_lock(&x->lock);
	if (ls_norm_pass_is_due(x, bucket)) {
		ls_norm_pass_shard_done(x);
	} else {
		x->bucket[bucket].passes_done = 0;
		x->strategy->shard_updated(x, bucket);
	}
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static void update_block(ls_exchange *x, int bucket, int unit, int participant)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	const ls_partition *p = &x->partition;
	size_t begin = b->begin + (size_t)unit * p->block;
	size_t end = begin + p->block < b->end ? begin + p->block : b->end;
	double start = x->o.trace ? ls_clock_seconds() : 0, summed = 0;

	const float *sums = b->passes_done > 0 ? ls_norm_pass_kept(x, bucket, begin)
					       : x->strategy->sum_block(x, bucket, begin, end, &x->part[participant]);
	if (x->o.trace)
		summed = ls_clock_seconds();
	if (ls_norm_pass_is_due(x, bucket)) {
		ls_norm_pass_block(x, bucket, begin, end, sums, participant);
	} else {
		size_t limit = begin < p->statistics_begin && end > p->reachable ? p->reachable : end;
		x->o.update(x->o.context, begin, limit, sums, participant);
		ls_all_gather_encode(x, bucket, begin, end);
	}
	if (x->o.trace) {
		x->o.trace(x->o.context, LS_EVENT_COMBINE, participant, bucket, start, summed);
		x->o.trace(x->o.context, LS_EVENT_UPDATE, participant, bucket, summed, ls_clock_seconds());
	}
	if (ls_worklist_done(&x->update_work, bucket))
		shard_done(x, bucket);
}

void ls_exchange_update_own_blocks(ls_exchange *x, int participant)
{
	int bucket, unit;
	while (ls_worklist_take_own(&x->update_work, participant, &bucket, &unit))
		update_block(x, bucket, unit, participant);
}

int ls_exchange_update_any_block(ls_exchange *x, int participant)
{
	int bucket, unit;
	if (!ls_worklist_take_any(&x->update_work, participant, &bucket, &unit))
		return 0;
	update_block(x, bucket, unit, participant);
	return 1;
}

ls_exchange_source ls_exchange_common_source(const ls_exchange *x, int bucket)
{
	uint64_t step = x->bucket[bucket].shard_step;
	return (ls_exchange_source){ .node = -1, .step = step, .updates = step - x->first };
}
