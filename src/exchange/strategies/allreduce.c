/*
 * allreduce.c - every node owns 1/N of every bucket: reduce-scatter, sharded update, all-gather.
 *
 *  1. A node sends its partial sums of each shard to the shard's owner.
 *  2. The owner adds the partial sums of all nodes in tree order and updates its shard; optimizer state exists once.
 *  3. The owner sends the new values of its shard to all other nodes.
 *
 * Bytes per node, for N nodes and M bytes of gradient: (N-1)/N M out and in for each of 1 and 3, what a ring moves. All
 * links are busy while any bucket is under way, and a bucket takes two messages' time, not 2 (N-1) as in a ring. A node
 * whose micro-batches are not one subtree has several partial sums of a bucket and sends each of them.
 */
#include "exchange/exchange_internal.h"

static void arrange(ls_exchange *x)
{
	ls_sharded_arrange(x, 0, x->nodes);
}

const ls_strategy ls_strategy_allreduce = {
	.info = { "allreduce", "every node owns 1/N of the parameters and of the optimizer state" },
	.keeps_bits = 1,
	.synchronous = 1,
	.encodes = 1,
	.changes = 1,
	.overlap = 1,
	.arrange = arrange,
	.init = ls_sharded_init,
	.begin = ls_sharded_begin,
	.bucket_ready = ls_exchange_sum_node,
	.do_own_work = ls_exchange_sum_own_blocks,
	.send = ls_reduce_scatter_send,
	.partial_arrived = ls_sharded_partial_arrived,
	.sum_block = ls_sharded_sum_block,
	.shard_updated = ls_sharded_shard_updated,
	.source = ls_exchange_common_source
};
