#include "comm/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "comm/collectives.h"

void ls_comm_name_node(char *out, size_t size, const ls_comm *comm, int node)
{
	snprintf(out, size, "node %d (%s)", node, ls_comm_host(comm, node));
}

typedef struct health {
	int32_t status;
	char message[500];
} health;

static ls_status first_failure(const ls_comm *comm, const health *all)
{
	int nodes = ls_comm_size(comm), first = 0, same = 0;
	char name[LS_COMM_NODE_NAME];

	while (first < nodes && all[first].status == LS_OK)
		first++;
	if (first == nodes)
		return LS_OK;
	for (int i = 0; i < nodes; i++)
		same += strcmp(all[i].message, all[first].message) == 0;
	if (same == nodes)
		return ls_fail(all[first].status, "%s", all[first].message);
	ls_comm_name_node(name, sizeof(name), comm, first);
	return ls_fail(all[first].status, "%s: %s", name, all[first].message);
}

ls_status ls_comm_agree(ls_comm *comm, ls_status mine)
{
	if (!comm || ls_comm_has_failed(comm))
		return mine != LS_OK || !comm ? mine : ls_comm_status(comm);
	health *all = calloc((size_t)ls_comm_size(comm) + 1, sizeof(*all));
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the status of all nodes");
	all->status = mine;
	snprintf(all->message, sizeof(all->message), "%s", mine != LS_OK ? ls_last_error() : "");
	ls_status status = ls_comm_allgather(comm, all, sizeof(*all), all + 1, "start of all nodes");
	if (status == LS_OK)
		status = first_failure(comm, all + 1);
	free(all);
	return status;
}
