#include "trainer/state_transfer.h"

#include <string.h>

#include "comm/collectives.h"

typedef enum direction { TO_OWNERS, TO_FIRST } direction;

/* Node `node`'s shards of an array of `reachable` floats. */
static ls_status move_shards(const ls_node_trainer *t, ls_comm *comm, int node, float *array, direction way,
			     const char *what)
{
	const ls_partition *plan = ls_exchange_partition(t->exchange);
	int owner = ls_exchange_owner_index(t->exchange, node);
	int from = way == TO_FIRST ? node : 0, to = way == TO_FIRST ? 0 : node;

	for (int b = 0; owner >= 0 && b < plan->buckets - 1; b++) {
		size_t begin, end;
		ls_partition_shard(plan, b, owner, &begin, &end);
		end = end < plan->reachable ? end : plan->reachable;
		if (begin < end)
			LS_TRY(ls_comm_sendrecv(comm, from, to, array + begin, array + begin,
						(end - begin) * sizeof(float), what));
	}
	return LS_OK;
}

static ls_status move_all(const ls_node_trainer *t, ls_comm *comm, float *array, direction way, const char *what)
{
	for (int node = 1; node < t->nodes; node++)
		LS_TRY(move_shards(t, comm, node, array, way, what));
	return LS_OK;
}

ls_status ls_state_scatter(ls_node_trainer *t, ls_comm *comm, int state)
{
	const ls_param_table *table = &t->graph->params;

	if (t->nodes == 1)
		return LS_OK;
	LS_TRY(ls_comm_broadcast(comm, 0, t->params, table->total * sizeof(float), "parameters"));
	LS_TRY(ls_comm_broadcast(comm, 0, t->buffers, table->buffers * sizeof(float), "running statistics"));
	for (int i = 0; state && i < t->kind->slots; i++) {
		if (t->options.strategy->replicated)
			LS_TRY(ls_comm_broadcast(comm, 0, t->slots[i], table->reachable * sizeof(float),
						 "optimizer state"));
		else
			LS_TRY(move_all(t, comm, t->slots[i], TO_OWNERS, "optimizer state"));
	}
	return LS_OK;
}

ls_status ls_state_gather(ls_node_trainer *t, ls_comm *comm)
{
	const ls_param_table *table = &t->graph->params;

	if (t->nodes == 1 || t->options.strategy->replicated)
		return LS_OK;
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(move_all(t, comm, t->slots[i], TO_FIRST, "optimizer state"));
	if (t->master == t->params)
		return LS_OK;
	memcpy(t->master + table->reachable, t->params + table->reachable,
	       (table->total - table->reachable) * sizeof(float));
	return move_all(t, comm, t->master, TO_FIRST, "exact parameters");
}
