/*
 * audit.h - whether all workers have the same parameters, bit for bit.
 */
#ifndef LS_TRAINER_AUDIT_H
#define LS_TRAINER_AUDIT_H

#include "trainer/layout.h"
#include "trainer/trainer.h"

/* Compare fingerprints of all workers; LS_EMISMATCH names those that differ from most. Called by all nodes, when no
 * step is under way. */
ls_status ls_audit(const ls_node_trainer *trainer, const ls_layout *layout, uint64_t step);

#endif
