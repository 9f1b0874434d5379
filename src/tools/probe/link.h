/*
 * link.h - bandwidth and latency between two nodes, and the time of the MPI library's own all-reduce over all nodes.
 */
#ifndef LS_TOOLS_PROBE_LINK_H
#define LS_TOOLS_PROBE_LINK_H

#include <lockstep/probe.h>

#include "comm/comm.h"

/* Messages in flight at once, for which the transport needs slots. */
enum { LS_LINK_MESSAGES = 32 };

typedef struct ls_link_options {
	double seconds; /* to keep one direction busy, per repeat */
	size_t bytes;   /* maximum to send per repeat */
	int repeat;
} ls_link_options;

/* Called by node 0 and by `peer`, with the same options; *out is filled in on node 0. */
ls_status ls_link_measure(ls_comm *comm, int peer, const ls_link_options *options, ls_probe_link *out);

/* The MPI library's own all-reduce of `count` floats, begun on all nodes together; *seconds: until this node has the
 * sum. */
ls_status ls_link_sum(ls_comm *comm, float *values, size_t count, double *seconds);

#endif
