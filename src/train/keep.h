/*
 * keep.h - a run's directory: claim it, continue it, checkpoint into it. The first node does; all others take part by
 * making the same calls.
 */
#ifndef LS_TRAIN_KEEP_H
#define LS_TRAIN_KEEP_H

#include "ckpt/checkpoint.h"
#include "train/lock.h"
#include "train/setup.h"

/* Claim the run directory, load what is to be continued (or initial weights) into the trainer, write run.json.
 * `position` is where to go on. `lock` is the caller's to drop when the run is over, also after a failure. Without a
 * run directory only the weights are filled in. */
ls_status ls_keep_begin(const ls_setup *setup, ls_run_lock *lock, ls_ckpt_progress *position);

/* Write a checkpoint of the trainer at `position`; a no-op without a run directory. */
ls_status ls_keep_save(const ls_setup *setup, const ls_ckpt_progress *position);

#endif
