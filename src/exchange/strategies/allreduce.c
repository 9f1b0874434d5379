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
	.info = { .name = "allreduce",
		  .title = "AllReduce",
		  .summary = "every node owns 1/N of the parameters and of the optimizer state",
		  .keeps_bits = 1 },
	.arrange = arrange,
	LS_SHARDED_STEP
};
