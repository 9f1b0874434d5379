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
	if (state && t->average)
		LS_TRY(ls_comm_broadcast(comm, 0, t->average, table->total * sizeof(float), "averaged parameters"));
	for (int i = 0; state && i < t->kind->slots; i++) {
		if (t->options.strategy->replicated)
			LS_TRY(ls_comm_broadcast(comm, 0, t->slots[i], table->reachable * sizeof(float),
						 "optimizer state"));
		else
			LS_TRY(move_all(t, comm, t->slots[i], TO_OWNERS, "optimizer state"));
	}
	return LS_OK;
}

static int has_whole_state(const ls_node_trainer *t)
{
	return t->nodes == 1 || t->options.strategy->replicated;
}

/* Weights that no gradient reaches have no average: they are what they are. */
static ls_status gather_average(ls_node_trainer *t, ls_comm *comm)
{
	const ls_param_table *table = &t->graph->params;

	if (!t->average)
		return LS_OK;
	memcpy(t->average + table->reachable, t->params + table->reachable,
	       (table->total - table->reachable) * sizeof(float));
	return has_whole_state(t) ? LS_OK : move_all(t, comm, t->average, TO_FIRST, "averaged parameters");
}

ls_status ls_state_share_average(ls_node_trainer *t, ls_comm *comm)
{
	LS_TRY(gather_average(t, comm));
	if (!t->average || has_whole_state(t))
		return LS_OK;
	return ls_comm_broadcast(comm, 0, t->average, t->graph->params.total * sizeof(float), "averaged parameters");
}

ls_status ls_state_gather(ls_node_trainer *t, ls_comm *comm)
{
	const ls_param_table *table = &t->graph->params;

	LS_TRY(gather_average(t, comm));
	if (has_whole_state(t))
		return LS_OK;
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(move_all(t, comm, t->slots[i], TO_FIRST, "optimizer state"));
	if (t->master == t->params)
		return LS_OK;
	memcpy(t->master + table->reachable, t->params + table->reachable,
	       (table->total - table->reachable) * sizeof(float));
	return move_all(t, comm, t->master, TO_FIRST, "exact parameters");
}

/* ---- shards as a block of bytes ---------------------------------------------------------------------------------- */

enum { WITH_PARAMS = 1, WITH_AVERAGE = 2, SLOTS_SHIFT = 8 };

int ls_state_owners(const ls_node_trainer *t)
{
	return has_whole_state(t) ? 1 : ls_exchange_partition(t->exchange)->owners;
}

int ls_state_owner(const ls_node_trainer *t, int node)
{
	return has_whole_state(t) ? 0 : ls_exchange_owner_index(t->exchange, node);
}

/* Servers have no parameters but their own, and with a bf16 wire only owners have exact ones. */
static int packs_params(const ls_node_trainer *t)
{
	return t->master != t->params || (t->nodes > 1 && t->options.strategy->info.has_servers);
}

static uint64_t stores_of(const ls_node_trainer *t)
{
	return (uint64_t)(packs_params(t) ? WITH_PARAMS : 0) | (t->average ? WITH_AVERAGE : 0) |
	       (uint64_t)t->kind->slots << SLOTS_SHIFT;
}

/* The arrays that a block has parts of; how many. */
static int list_stores(const ls_node_trainer *t, uint64_t stores, float *params, float *out[LS_SLOTS_MAX + 2])
{
	int count = 0;
	if (stores & WITH_PARAMS)
		out[count++] = params;
	for (int i = 0; i < t->kind->slots; i++)
		out[count++] = t->slots[i];
	if (stores & WITH_AVERAGE)
		out[count++] = t->average;
	return count;
}

/* The ranges of a node's shards; `out` may be NULL. How many, and of how many floats. */
static uint64_t list_ranges(const ls_node_trainer *t, int node, uint64_t (*out)[2], uint64_t *floats)
{
	const ls_partition *plan = has_whole_state(t) ? NULL : ls_exchange_partition(t->exchange);
	int owner = ls_state_owner(t, node), buckets = plan ? plan->buckets - 1 : 1;
	size_t begin = 0, end = t->graph->params.reachable;
	uint64_t count = 0;

	*floats = 0;
	for (int b = 0; owner >= 0 && b < buckets; b++) {
		if (plan) {
			ls_partition_shard(plan, b, owner, &begin, &end);
			end = end < plan->reachable ? end : plan->reachable;
		}
		if (begin >= end)
			continue;
		if (out) {
			out[count][0] = begin;
			out[count][1] = end;
		}
		count++;
		*floats += end - begin;
	}
	return count;
}

size_t ls_state_shard_bytes(const ls_node_trainer *t, int node)
{
	float *stores[LS_SLOTS_MAX + 2];
	uint64_t floats, ranges = list_ranges(t, node, NULL, &floats);
	int count = list_stores(t, stores_of(t), t->master, stores);

	return ranges == 0 ? 0 : (2 + 2 * ranges) * sizeof(uint64_t) + (size_t)count * floats * sizeof(float);
}

void ls_state_pack(const ls_node_trainer *t, void *out)
{
	uint64_t *head = out, (*range)[2] = (uint64_t(*)[2])(head + 2), floats;
	float *stores[LS_SLOTS_MAX + 2];
	int count = list_stores(t, stores_of(t), t->master, stores);

	head[0] = list_ranges(t, t->node, range, &floats);
	head[1] = stores_of(t);
	float *at = (float *)(range + head[0]);
	for (int i = 0; i < count; i++)
		for (uint64_t r = 0; r < head[0]; r++) {
			size_t length = range[r][1] - range[r][0];
			memcpy(at, stores[i] + range[r][0], length * sizeof(float));
			at += length;
		}
}

/* A block may come from anywhere: nothing in it is believed. */
static ls_status check_block(const ls_node_trainer *t, const void *block, size_t bytes)
{
	const uint64_t *head = block, (*range)[2] = (const uint64_t(*)[2])(head + 2);
	uint64_t most = (t->average ? WITH_AVERAGE : 0) | (uint64_t)t->kind->slots << SLOTS_SHIFT, floats = 0;
	size_t begin = 2 * sizeof(uint64_t), stores = (size_t)t->kind->slots + (t->average != NULL);

	if (bytes < begin || (head[1] & ~(uint64_t)WITH_PARAMS) != most || head[0] > (bytes - begin) / sizeof(*range))
		return ls_fail(LS_EFORMAT, "a snapshot is not of this model and optimizer");
	stores += head[1] & WITH_PARAMS;
	for (uint64_t r = 0; r < head[0]; r++) {
		if (range[r][0] >= range[r][1] || range[r][1] > t->graph->params.reachable)
			return ls_fail(LS_EFORMAT, "a snapshot has a range that is not in the model");
		floats += range[r][1] - range[r][0];
	}
	if (floats > t->graph->params.reachable ||
	    bytes != begin + head[0] * sizeof(*range) + stores * floats * sizeof(float))
		return ls_fail(LS_EFORMAT, "a snapshot has %zu bytes, not as many as it says", bytes);
	return LS_OK;
}

ls_status ls_state_unpack(ls_node_trainer *t, const void *block, size_t bytes)
{
	const uint64_t *head = block, (*range)[2] = (const uint64_t(*)[2])(head + 2);
	float *stores[LS_SLOTS_MAX + 2];

	LS_TRY(check_block(t, block, bytes));
	int count = list_stores(t, head[1], t->params, stores);
	const float *at = (const float *)(range + head[0]);
	for (int i = 0; i < count; i++)
		for (uint64_t r = 0; r < head[0]; r++) {
			size_t length = range[r][1] - range[r][0];
			memcpy(stores[i] + range[r][0], at, length * sizeof(float));
			at += length;
		}
	return LS_OK;
}

/* Every bucket's shard is rounded up to whole blocks. */
size_t ls_state_shard_most(const ls_node_trainer_options *o, int nodes)
{
	const ls_optimizer_kind *kind;
	size_t reachable = o->graph->params.reachable, bucket = o->bucket > 0 ? o->bucket : LS_BUCKET_NODES;
	size_t owners = o->servers > 0 ? (size_t)o->servers : (size_t)nodes, buckets = reachable / bucket + 2;

	if (ls_optimizer_find(o->optimizer, &kind) != LS_OK)
		return 0;
	size_t floats =
		nodes == 1 || o->strategy->replicated ? reachable : reachable / owners + buckets * LS_NORM_BLOCK;
	floats = floats < reachable ? floats : reachable;
	return (2 + 2 * buckets) * sizeof(uint64_t) + ((size_t)kind->slots + 2) * floats * sizeof(float);
}
