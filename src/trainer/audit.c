#include "trainer/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "comm/collectives.h"

/* The fingerprint that most workers have; the lowest node's among equals. */
static uint64_t most_common(const uint64_t *fingerprint, int workers)
{
	int best = 0, best_count = 0;
	for (int i = 0; i < workers; i++) {
		int count = 0;
		for (int k = 0; k < workers; k++)
			count += fingerprint[k] == fingerprint[i];
		if (count > best_count) {
			best = i;
			best_count = count;
		}
	}
	return fingerprint[best];
}

static ls_status judge(const ls_layout *l, const uint64_t *fingerprint, uint64_t step)
{
	int workers = l->nodes - l->servers, differ = 0;
	uint64_t right = most_common(fingerprint, workers);
	char names[512];
	size_t used = 0;

	for (int i = 0; i < workers; i++) {
		if (fingerprint[i] == right)
			continue;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%snode %d (%s)",
						 differ ? ", " : "", i, ls_comm_host(l->comm, i));
		differ++;
	}
	if (differ == 0)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "audit after step %llu: the parameters of %s are not those of the other nodes (xxh64 %016llx): "
		       "check its memory and its processor",
		       (unsigned long long)step, names, (unsigned long long)right);
}

ls_status ls_audit(const ls_node_trainer *t, const ls_layout *l, uint64_t step)
{
	uint64_t mine = 0;
	if (l->nodes == 1)
		return LS_OK;
	uint64_t *all = calloc((size_t)l->nodes, sizeof(*all));
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for an audit of %d nodes", l->nodes);
	ls_status status = ls_layout_is_server(l) ? LS_OK : ls_node_trainer_fingerprint(t, &mine);
	if (status == LS_OK)
		status = ls_comm_allgather(l->comm, &mine, sizeof(mine), all, "audit of parameters");
	if (status == LS_OK)
		status = judge(l, all, step);
	free(all);
	return status;
}
