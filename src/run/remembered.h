/*
 * remembered.h - a resumed run takes the settings it was last started with, except those that are given again.
 *
 * Given is what was set by name, and a field that is not the default. Those that bind are compared later
 * (ls_settings_compare), the others count as they are. Some settings stand together:
 *   1. batch, micro-batch and batch-per-device: a run keeps what they resolve to; where one is given, none of that is
 *      taken;
 *   2. epochs and steps: where epochs are given, steps of an earlier start do not override them;
 *   3. how nodes work together (the group LS_SETTINGS_NODES): taken where there are as many nodes as there were;
 *   4. what concerns one start alone (LS_SETTING_ONCE) is never taken;
 *   5. precision "auto" is what it came to when the run was started.
 */
#ifndef LS_RUN_REMEMBERED_H
#define LS_RUN_REMEMBERED_H

#include <lockstep/train.h>

#include "comm/comm.h"

/* Fill `out` from the options and, with `resume`, from what the first node's run says; `stored` owns its strings then.
 * Called by all nodes. */
ls_status ls_recall(ls_train_options *out, ls_train_stored *stored, const ls_train_options *options, ls_comm *comm);

#endif
