#include "train/handover.h"

#include <string.h>

#include "exchange/collect.h"

typedef enum direction { TO_OWNERS, TO_FIRST } direction;

/* Node `node`'s slices of an array of `live` floats. */
static ls_status move_slices(const ls_trainer *t, ls_courier *courier, int node, float *array, direction way,
			     const char *what)
{
	const ls_plan *plan = ls_exchange_plan(t->exchange);
	int owner = ls_exchange_owner_index(t->exchange, node);
	int from = way == TO_FIRST ? node : 0, to = way == TO_FIRST ? 0 : node;

	for (int b = 0; owner >= 0 && b < plan->buckets - 1; b++) {
		size_t begin, end;
		ls_plan_slice(plan, b, owner, &begin, &end);
		end = end < plan->live ? end : plan->live;
		if (begin < end)
			LS_TRY(ls_collect_move(courier, from, to, array + begin, array + begin,
					       (end - begin) * sizeof(float), what));
	}
	return LS_OK;
}

static ls_status move_all(const ls_trainer *t, ls_courier *courier, float *array, direction way, const char *what)
{
	for (int node = 1; node < t->nodes; node++)
		LS_TRY(move_slices(t, courier, node, array, way, what));
	return LS_OK;
}

ls_status ls_handover_spread(ls_trainer *t, ls_courier *courier, int state)
{
	const ls_param_table *table = &t->graph->params;

	if (t->nodes == 1)
		return LS_OK;
	LS_TRY(ls_collect_broadcast(courier, 0, t->params, table->total * sizeof(float), "parameters"));
	LS_TRY(ls_collect_broadcast(courier, 0, t->buffers, table->buffers * sizeof(float), "running statistics"));
	for (int i = 0; state && i < t->kind->slots; i++) {
		if (t->library_sum)
			LS_TRY(ls_collect_broadcast(courier, 0, t->slots[i], table->live * sizeof(float),
						    "optimizer state"));
		else
			LS_TRY(move_all(t, courier, t->slots[i], TO_OWNERS, "optimizer state"));
	}
	return LS_OK;
}

ls_status ls_handover_gather(ls_trainer *t, ls_courier *courier)
{
	const ls_param_table *table = &t->graph->params;

	if (t->nodes == 1 || t->library_sum)
		return LS_OK;
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(move_all(t, courier, t->slots[i], TO_FIRST, "optimizer state"));
	if (t->master == t->params)
		return LS_OK;
	memcpy(t->master + table->live, t->params + table->live, (table->total - table->live) * sizeof(float));
	return move_all(t, courier, t->master, TO_FIRST, "exact parameters");
}
