/*
 * handover.h - all that a step changes, between the first node and the nodes that own parts of it.
 *
 * Every node has whole parameters and running statistics; optimizer state is right on the owner of a slice alone, and
 * so are exact parameters when the wire is bf16. A checkpoint is the first node's after gathering, and a run that is
 * resumed begins by spreading: hence a checkpoint does not know how many nodes wrote it. On one node both do nothing.
 * Called by all nodes, when no step is under way.
 */
#ifndef LS_TRAIN_HANDOVER_H
#define LS_TRAIN_HANDOVER_H

#include "train/trainer.h"

/* The first node's parameters and statistics to everybody, and with `state` optimizer state to its owners. */
ls_status ls_handover_spread(ls_trainer *trainer, ls_courier *courier, int state);

/* Owners' optimizer state and exact parameters to the first node, where trainer->master is then whole. */
ls_status ls_handover_gather(ls_trainer *trainer, ls_courier *courier);

#endif
