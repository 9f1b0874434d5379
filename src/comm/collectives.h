/*
 * collectives.h - broadcast, gather, allgather, sendrecv and barrier between steps: settings, checkpoints,
 * evaluations.
 *
 * Each call waits until this node's part is done, and is made by all nodes in the same order, by one thread of each,
 * between steps: after ls_exchange_await() of the last one. Messages go through the communication thread, so a peer
 * that dies is an error here and not a hang. A NULL `comm` is one node alone: every call is then a copy or nothing.
 */
#ifndef LS_COMM_COLLECTIVES_H
#define LS_COMM_COLLECTIVES_H

#include <stddef.h>

#include "comm/comm.h"

/* All nodes get the root's buffer. Large buffers go in parts, passed on from node to node. */
ls_status ls_comm_broadcast(ls_comm *comm, int root, void *buffer, size_t bytes, const char *what);

/* all (size * bytes, in node order) at the root is filled; elsewhere it may be NULL. */
ls_status ls_comm_gather(ls_comm *comm, int root, const void *mine, size_t bytes, void *all, const char *what);

/* The same, with the result on every node. */
ls_status ls_comm_allgather(ls_comm *comm, const void *mine, size_t bytes, void *all, const char *what);

/* One buffer from one node to another; others do nothing. */
ls_status ls_comm_sendrecv(ls_comm *comm, int from, int to, const void *source, void *target, size_t bytes,
			   const char *what);

/* No node returns before all have called. */
ls_status ls_comm_barrier(ls_comm *comm, const char *what);

#endif
