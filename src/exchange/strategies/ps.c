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
	.info = { .name = "ps",
		  .title = "PS",
		  .summary = "parameter servers own all parameters; every step waits for all workers",
		  .has_servers = 1,
		  .keeps_bits = 1 },
	.arrange = arrange,
	LS_SHARDED_STEP
};
