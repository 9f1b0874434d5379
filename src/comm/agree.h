/*
 * agree.h - one outcome for all nodes, after each has tried something of its own.
 */
#ifndef LS_COMM_AGREE_H
#define LS_COMM_AGREE_H

#include "comm/comm.h"

/* Whether all nodes got this far: LS_OK when all pass LS_OK, else the first failure, on all nodes, with the failing
 * node's name unless all nodes fail alike. Called by all nodes. */
ls_status ls_comm_agree(ls_comm *comm, ls_status mine);

/* "node 2 (host)", for messages. */
enum { LS_COMM_NODE_NAME = 160 };
void ls_comm_name_node(char *out, size_t size, const ls_comm *comm, int node);

#endif
