/*
 * banner.h - the table of nodes that a run begins with.
 */
#ifndef LS_RUN_BANNER_H
#define LS_RUN_BANNER_H

#include "trainer/layout.h"
#include "trainer/trainer.h"

/* Every node reports its devices, links to the first node are timed if `times_links`, and the first node prints the
 * table. Does nothing on one node. Called by all nodes. */
ls_status ls_banner(const ls_layout *layout, const ls_node_trainer *trainer, int times_links);

#endif
