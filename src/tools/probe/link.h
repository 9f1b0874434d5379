/*
 * link.h - what the wire between two nodes carries, and what the MPI library makes of all of them.
 */
#ifndef LS_TOOLS_PROBE_LINK_H
#define LS_TOOLS_PROBE_LINK_H

#include <lockstep/probe.h>

#include "comm/comm.h"

/* Messages under way at once, which the transport needs slots for. */
enum { LS_LINK_MESSAGES = 32 };

typedef struct ls_link_options {
	double seconds; /* that a way should be busy in each repeat */
	size_t bytes;   /* most to send in a repeat */
	int repeat;
} ls_link_options;

/* Called by node 0 and by `peer`, with the same options; *out is filled in on node 0. */
ls_status ls_link_measure(ls_comm *comm, int peer, const ls_link_options *options, ls_probe_link *out);

/* The library's own sum of `count` floats over all nodes, begun together; seconds until this node has it. */
ls_status ls_link_sum(ls_comm *comm, float *values, size_t count, double *seconds);

#endif
