#include "run/banner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/collectives.h"

/* A message to warm up and get an idea with, and how long and large the one that counts is to be. */
enum { FIRST_BYTES = 64 * 1024, MOST_BYTES = 8 * 1024 * 1024 };
static const double MESSAGE_S = 0.05;

typedef struct node_info {
	int32_t devices, threads, cores;
	char pinning[80];
} node_info;

static double timed_move(ls_comm *comm, int from, void *buffer, size_t bytes, ls_status *status)
{
	double start = ls_clock_seconds();
	if (*status == LS_OK)
		*status = ls_comm_sendrecv(comm, from, 0, buffer, buffer, bytes, "test of the link");
	return ls_clock_seconds() - start;
}

/* Bytes per second from a node to the first, as the first node measured them. */
static ls_status measure_link(ls_comm *comm, int from, void *buffer, double *rate)
{
	ls_status status = LS_OK;
	double first = timed_move(comm, from, buffer, FIRST_BYTES, &status);
	double wanted = FIRST_BYTES * MESSAGE_S / (first > 1e-6 ? first : 1e-6);
	uint64_t bytes = wanted < FIRST_BYTES ? FIRST_BYTES : wanted > MOST_BYTES ? MOST_BYTES : (uint64_t)wanted;

	LS_TRY(status);
	LS_TRY(ls_comm_broadcast(comm, 0, &bytes, sizeof(bytes), "size of the test"));
	double seconds = timed_move(comm, from, buffer, (size_t)bytes, &status);
	*rate = (double)bytes / (seconds > 1e-9 ? seconds : 1e-9);
	return status;
}

static ls_status measure_links(const ls_layout *l, double *rate)
{
	char *buffer = calloc(MOST_BYTES, 1);
	ls_status status = buffer ? LS_OK : ls_fail(LS_EMEMORY, "no memory to test links with");

	for (int i = 1; status == LS_OK && i < l->nodes; i++) {
		status = ls_comm_barrier(l->comm, "test of links");
		if (status == LS_OK)
			status = measure_link(l->comm, i, buffer, &rate[i]);
	}
	free(buffer);
	return status;
}

static void print_node(const ls_layout *l, int node, const node_info *g, double rate)
{
	char devices[48], link[32] = "-";
	int server = node >= l->nodes - l->servers;

	if (server)
		snprintf(devices, sizeof(devices), "server");
	else
		snprintf(devices, sizeof(devices), "%d x %d", g->devices, g->threads);
	if (rate > 0)
		snprintf(link, sizeof(link), "%.0f MB/s", rate / 1e6);
	ls_log_line("%-5d %-16s %-18s %5d  %10s  %s", node, ls_comm_host(l->comm, node), devices, g->cores, link,
		    server ? "" : g->pinning);
}

static void print_table(const ls_layout *l, const node_info *nodes, const double *rate)
{
	ls_log_line("%-5s %-16s %-18s %5s  %10s  %s", "node", "host", "devices x threads", "cores", "to node 0",
		    "pinning");
	for (int i = 0; i < l->nodes; i++)
		print_node(l, i, &nodes[i], rate[i]);
}

ls_status ls_banner(const ls_layout *l, const ls_node_trainer *t, int times_links)
{
	node_info mine = { .devices = l->devices, .threads = l->threads, .cores = ls_pin_cores() };

	if (l->nodes == 1)
		return LS_OK;
	if (l->devices > 0)
		ls_devices_describe(t->devices, mine.pinning, sizeof(mine.pinning));
	node_info *nodes = calloc((size_t)l->nodes, sizeof(*nodes));
	double *rate = calloc((size_t)l->nodes, sizeof(*rate));
	ls_status status = nodes && rate ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a table of %d nodes", l->nodes);
	if (status == LS_OK)
		status = ls_comm_gather(l->comm, 0, &mine, sizeof(mine), nodes, "table of nodes");
	if (status == LS_OK && times_links)
		status = measure_links(l, rate);
	if (status == LS_OK && l->node == 0)
		print_table(l, nodes, rate);
	free(rate);
	free(nodes);
	return status;
}
