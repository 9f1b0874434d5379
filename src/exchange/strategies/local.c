/*
 * local.c - one node: the devices are threads of one process and read each other's gradients.
 *
 * A bucket that all devices have given is updated block by block, by the workers of the devices while they compute on:
 * a worker adds the partial sums of all devices, straight out of their stores, and updates. Nothing is copied, and
 * there are no messages. The step is complete when the last bucket is updated.
 */
#include <unistd.h>

#include "exchange/exchange_internal.h"

/* Workers wait for each other for microseconds. */
enum { SPINS_ALONE = 20000 };

static void arrange(ls_exchange *x)
{
	x->owners = x->group = 1;
	x->inputs = 1;
	x->rows = 0;
	x->updaters = x->members;
	x->waiter = 0;
	if (x->members <= sysconf(_SC_NPROCESSORS_ONLN))
		x->spins = SPINS_ALONE;
}

static void begin(ls_exchange *x, const ls_exchange_assignment *assign)
{
	(void)x;
	(void)assign;
}

static void bucket_ready(ls_exchange *x, int bucket)
{
	pthread_mutex_lock(&x->lock);
	ls_exchange_publish_shard(x, bucket);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

static const float *sum_block(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part)
{
	const ls_summation *sum = ls_exchange_summation(x, x->bucket[bucket].shard_step);

	for (int i = 0; i < sum->node_fold.inputs; i++)
		part->inputs[i] = ls_exchange_source_at(x, sum, i, begin);
	if (sum->node_fold.inputs == 1)
		return part->inputs[0];
	ls_fold_run(&sum->node_fold, 0, part->inputs, end - begin, part->sums, part->scratch);
	return part->sums;
}

static void shard_updated(ls_exchange *x, int bucket)
{
	x->bucket[bucket].shard_step++;
	ls_exchange_values_arrived(x, bucket, 0);
	ls_exchange_bucket_done(x);
}

const ls_strategy ls_strategy_local = {
	.info = { .name = "local",
		  .title = "local",
		  .summary = "one node: devices update shards out of each other's gradients",
		  .keeps_bits = 1 },
	.synchronous = 1,
	.replicated = 1,
	.overlap = 1,
	.arrange = arrange,
	.begin = begin,
	.bucket_ready = bucket_ready,
	.do_own_work = ls_exchange_update_own_blocks,
	.sum_block = sum_block,
	.shard_updated = shard_updated,
	.source = ls_exchange_common_source
};
