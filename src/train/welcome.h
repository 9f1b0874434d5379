/*
 * welcome.h - the table of nodes that a run begins with.
 */
#ifndef LS_TRAIN_WELCOME_H
#define LS_TRAIN_WELCOME_H

#include "train/layout.h"
#include "train/trainer.h"

/* Every node tells what it has, links to the first node are timed, and that one prints the table. Nothing on one node.
 * Called by all nodes. */
ls_status ls_welcome(const ls_layout *layout, const ls_trainer *trainer);

#endif
