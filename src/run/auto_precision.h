/*
 * auto_precision.h - what options.precision "auto" comes to: one precision for all nodes, which the run keeps.
 */
#ifndef LS_RUN_AUTO_PRECISION_H
#define LS_RUN_AUTO_PRECISION_H

#include "base/status.h"
#include "comm/comm.h"

/* Where it is "auto", the first node measures, prints what it found, and all nodes get its
 * choice. Called by all nodes. */
ls_status ls_auto_precision(const char **precision, ls_comm *comm);

#endif
