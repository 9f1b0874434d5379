/*
 * run_dir.h - a run's directory: claim it, continue it, checkpoint into it. The first node does the work; all others
 * take part by making the same calls.
 */
#ifndef LS_RUN_RUN_DIR_H
#define LS_RUN_RUN_DIR_H

#include "checkpoint/checkpoint.h"
#include "run/lock.h"
#include "run/setup.h"

/* Claim the run directory, load what is to be continued (or initial weights) into the trainer, write run.json.
 * `position` is where to go on. `lock` is the caller's to drop when the run is over, also after a failure. Without a
 * run directory only the weights are filled in. */
ls_status ls_keep_begin(const ls_setup *setup, ls_run_lock *lock, ls_ckpt_progress *position);

/* A checkpoint in two parts: the first node gathers the state of all nodes; then it alone writes the files.
 * `fingerprint` is that of what was saved. */
ls_status ls_keep_gather(const ls_setup *setup);
ls_status ls_keep_save(const ls_setup *setup, const ls_ckpt_progress *position, uint64_t *fingerprint);

/* The run directory was removed under the run: make it anew, for what can still be saved. Refused where something else
 * has its name by now. Of the first node. */
ls_status ls_keep_restore(const ls_setup *setup, ls_run_lock *lock);

#endif
