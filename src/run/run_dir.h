/*
 * run_dir.h - a run's directory: claim it, continue it, checkpoint into it. The first node does the work; all others
 * take part by making the same calls.
 */
#ifndef LS_RUN_RUN_DIR_H
#define LS_RUN_RUN_DIR_H

#include "checkpoint/checkpoint.h"
#include "run/lock.h"
#include "run/setup.h"
#include "run/snapshots.h"
#include "settings/settings.h"
#include "trained/weights.h"

/* Claim the run directory, load what is to be continued (or initial weights) into the trainer, write
 * run.json. What is continued is the newest checkpoint, or a newer snapshot in memory; `position` is where to
 * go on. `lock` is the caller's to drop when the run is over, also after a failure. Without a run directory
 * only the weights are filled in. */
ls_status ls_keep_begin(const ls_setup *setup, ls_run_lock *lock, ls_snapshots *memory, ls_ckpt_progress *position);

/* What of a trainer goes into a checkpoint: its stores. Whose model it is, and the position, are the caller's. */
ls_ckpt_content ls_keep_content(ls_node_trainer *trainer);

/* The settings as a run keeps them. */
typedef struct ls_kept {
	ls_train_options options;
	ls_settings_paths paths; /* of the options */
	ls_settings_context context;
	char *text; /* owned */
} ls_kept;

/* The state of an optimizer; where a moving average is the model, also what it is the average of. */
typedef struct ls_keep_stores {
	const char *names[LS_SLOTS_MAX + 1];
	float *arrays[LS_SLOTS_MAX + 1];
	int count;
} ls_keep_stores;

/* A checkpoint that is to be written. It refers to itself: not to be copied. */
typedef struct ls_keep_job {
	ls_kept kept;
	ls_weights_notes notes;
	ls_keep_stores stores;
	ls_ckpt_content content; /* the trainer's stores */
} ls_keep_job;

/* A checkpoint in three parts: the first node gathers the state of all nodes; it alone notes what is to be written; and
 * it, or a thread beside it that has a copy of the stores (checkpoint/snapshot.h), writes the files. */
ls_status ls_keep_gather(const ls_setup *setup);
ls_status ls_keep_prepare(ls_keep_job *job, const ls_setup *setup, const ls_ckpt_progress *position);
void ls_keep_job_release(ls_keep_job *job); /* harmless when zeroed, and twice */

/* The same of the weights of `position`, which are the best by `metric`, to RUN/best.safetensors. */
ls_status ls_keep_prepare_best(ls_keep_job *job, const ls_setup *setup, const ls_ckpt_progress *position,
			       const char *metric);
ls_status ls_keep_write_best(const char *run, const ls_ckpt_content *content);

/* The run directory was removed under the run: make it anew, for what can still be saved. Refused where something else
 * has its name by now. Of the first node. */
ls_status ls_keep_restore(const ls_setup *setup, ls_run_lock *lock);

#endif
