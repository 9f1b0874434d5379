#include "run/async.h"

#include <stdlib.h>

#include "comm/collectives.h"

enum { FIRST_SPEEDS = 8 };

int ls_async_is_on(const ls_async *a)
{
	return !a->setup->layout.strategy->synchronous;
}

int ls_async_has_loss(const ls_async *a, const ls_node_trainer_report *r)
{
	return !ls_layout_is_server(&a->setup->layout) && r->samples > 0;
}

ls_status ls_async_learn(ls_async *a, const ls_node_trainer_report *r, int wants_to_end)
{
	int node = a->setup->layout.node;

	a->since.stops |= r->stops || wants_to_end;
	a->since.microbatches += r->microbatches[node];
	a->since.seconds += r->node_s[node];
	return ls_batches_skip(&a->setup->train_batches);
}

int ls_async_is_due(const ls_async *a, uint64_t done)
{
	return ls_async_is_on(a) && a->setup->layout.share == LS_SHARE_AUTO &&
	       done == a->setup->trainer->first_step + FIRST_SPEEDS;
}

/* Shares follow the speeds of all nodes. */
static void learn_together(ls_async *a, const ls_async_since *all, int64_t *microbatches, double *seconds, int *stops)
{
	for (int n = 0; n < a->setup->layout.nodes; n++) {
		microbatches[n] = all[n].microbatches;
		seconds[n] = all[n].seconds;
		*stops |= all[n].stops != 0;
	}
	ls_batches_learn_together(&a->setup->train_batches, microbatches, seconds);
}

ls_status ls_async_exchange(ls_async *a, int *stops)
{
	const ls_layout *layout = &a->setup->layout;
	size_t nodes = (size_t)layout->nodes;

	if (!ls_async_is_on(a))
		return LS_OK;
	ls_async_since *all = calloc(nodes, sizeof(*all));
	int64_t *microbatches = calloc(nodes, sizeof(*microbatches));
	double *seconds = calloc(nodes, sizeof(*seconds));
	ls_status status = all && microbatches && seconds
				   ? ls_comm_allgather(layout->comm, &a->since, sizeof(a->since), all, "speeds")
				   : ls_fail(LS_EMEMORY, "no memory for the speeds of %zu nodes", nodes);
	if (status == LS_OK)
		learn_together(a, all, microbatches, seconds, stops);
	a->since = (ls_async_since){ 0 };
	free(seconds);
	free(microbatches);
	free(all);
	return status;
}
