/*
 * init.h - comm_init and comm_finalize: connect the nodes that a launcher has started, and disconnect them.
 */
#ifndef LS_COMM_INIT_H
#define LS_COMM_INIT_H

#include "comm/comm.h"

/* Start a communication thread between this node and the others, over MPI; a node that is silent for `timeout` seconds
 * counts as gone. */
ls_status ls_comm_init(ls_comm **out, int nodes, double timeout);

/*
 * This node's work came to `status`; `together`: all nodes have found the same. Frees the communication thread and
 * gives the status back. One node reports a failure; on the others the message is empty, and they leave a moment later.
 * Where this node's work is done but another node fails or is silent before all have come here, that is the status: the
 * process must exit with one other than zero, and the message says that the work of this node is complete.
 */
ls_status ls_comm_finalize(ls_comm *comm, ls_status status, int together);

#endif
