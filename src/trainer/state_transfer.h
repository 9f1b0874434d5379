/*
 * state_transfer.h - move parameters and optimizer state between the first node and the shard owners.
 *
 * Every node has whole parameters and running statistics; optimizer state is right on the owner of a shard alone, and
 * so are exact parameters when the wire is bf16. A checkpoint is the first node's after gathering, and a run that is
 * resumed begins by spreading: hence a checkpoint does not know how many nodes wrote it. On one node both do nothing.
 * Called by all nodes, when no step is under way.
 */
#ifndef LS_TRAINER_STATE_TRANSFER_H
#define LS_TRAINER_STATE_TRANSFER_H

#include "trainer/trainer.h"

/* The first node's parameters and statistics to everybody, and with `state` optimizer state to its owners. */
ls_status ls_state_scatter(ls_node_trainer *trainer, ls_comm *comm, int state);

/* Owners' optimizer state and exact parameters to the first node, where trainer->master is then whole. */
ls_status ls_state_gather(ls_node_trainer *trainer, ls_comm *comm);

#endif
