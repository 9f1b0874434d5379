/*
 * ps.c - parameter servers: the last S nodes own all shards and compute nothing.
 *
 * A step is that of allreduce with other owners: workers send partial sums to servers, servers add those of all workers
 * in tree order, update, and send the new values to all workers.
 *
 * Bytes, for N nodes and M bytes of gradient: M out and M in per worker; (N-S)/S M out and in per server.
 */
#include "exchange/exchange_internal.h"

static void arrange(ls_exchange *x)
{
	ls_sharded_arrange(x, x->workers, x->o.servers);
}

const ls_strategy ls_strategy_ps = {
	.info = { "ps", "parameter servers own all parameters; every step waits for all workers" },
	.keeps_bits = 1,
	.has_servers = 1,
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
