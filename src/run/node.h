/*
 * node.h - one node's part in a run: what ls_train() does once nodes can talk to each other.
 */
#ifndef LS_RUN_NODE_H
#define LS_RUN_NODE_H

#include <lockstep/train.h>

#include "comm/comm.h"

/*
 * `comm` is taken over; NULL: one node alone. On failure one node says what ended the run; on the others the message
 * is empty. Tests run nodes as threads of one process.
 */
ls_status ls_train_node(const ls_train_options *options, ls_comm *comm, ls_train_result *result);

#endif
