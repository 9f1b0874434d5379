/*
 * saver.h - the checkpoints of a run that goes on, and its directory, which may be moved or removed meanwhile.
 *
 *     setup, reporter, hooks, position  of the step loop, borrowed
 *     ls_saver_begin()               claim the directory, load what is continued
 *     ls_saver_look()                now and then: is the directory still there?
 *     ls_saver_save()                a checkpoint of `position`, by all nodes
 *     ls_saver_collect()             after every step: what became of the checkpoint that is being written
 *     ls_saver_rescue()              what has been trained when the data cannot be read any more
 *     ls_saver_report()              the run fails where its directory was moved or removed
 *     ls_saver_end()                 wait for what is being written
 *
 * Invariants
 *  1. While training goes on, the first node copies its stores into a snapshot between two steps, and a thread beside
 *     it writes the files: a checkpoint costs the copy, not the disk.
 *  2. There is one snapshot, and no checkpoint is left out: the next one waits until the one before is on disk. So when
 *     step n's is begun, that of the step before it that was asked for is whole.
 *  3. Only the thread of the step loop decides: it learns of a failure between two steps, and the run ends with it.
 *  4. When training is over, or where there is no memory for a snapshot, the files are written from the trainer's own
 *     stores.
 */
#ifndef LS_RUN_SAVER_H
#define LS_RUN_SAVER_H

#include "base/background.h"
#include "checkpoint/snapshot.h"
#include "run/hooks.h"
#include "run/lock.h"
#include "run/reporter.h"
#include "run/setup.h"
#include "run/snapshots.h"

#define LS_DIVERGED "try a smaller options.lr, options.warmup or options.clip_norm"

typedef struct ls_saver {
	ls_setup *setup;
	ls_reporter *reporter;
	ls_hooks *hooks;
	ls_ckpt_progress *position;
	uint64_t saved_step; /* of the newest checkpoint written or resumed from */
	ls_run_lock lock;
	ls_run_where where; /* the run directory is; only the first node looks */
	int is_restored;    /* made anew after it was removed */
	const char *was;    /* its name before it was moved */
	char place[4096];   /* and since */
	int is_overdue;     /* see ls_saver_is_due() */
	ls_snapshots memory;

	/* of the first node */
	struct ls_saver_write *write; /* the checkpoint that is being written, or was last */
	ls_snapshot *snapshot;        /* NULL: written from the trainer's stores */
	ls_background writer;
} ls_saver;

/* Of the step before `position`, whose epoch is that of the next step. */
static inline uint64_t ls_last_epoch(const ls_ckpt_progress *position)
{
	return position->epoch_step > 0 || position->epoch == 0 ? position->epoch : position->epoch - 1;
}

ls_status ls_saver_begin(ls_saver *saver);

/* Whether a checkpoint is due after `step`: because of --ckpt-every (of runs that save by epochs, the caller knows), or
 * because the run goes on from a snapshot in memory and the checkpoint that was due before it is not on disk. A run
 * that is killed again and again would otherwise advance in memory alone. */
static inline int ls_saver_is_due(const ls_saver *saver, uint64_t step)
{
	uint64_t every = (uint64_t)saver->setup->options->ckpt_every;
	return saver->is_overdue || (every > 0 && step % every == 0);
}

/* A run whose directory is not where it was, or that was started again elsewhere, ends with the step it is at.
 * Costs a few system calls. */
void ls_saver_look(ls_saver *saver);

/* "the last checkpoint is kept", for a run that fails. Waits for one that is being written. */
const char *ls_saver_kept(ls_saver *saver);

/* Called by all nodes, when the step is complete. Weights that give no finite loss are refused: they must not replace a
 * good checkpoint. goes_on: training does meanwhile, and ls_saver_collect() has the outcome; else it is on disk when
 * this returns. */
ls_status ls_saver_save(ls_saver *saver, int goes_on);

/* Whether the checkpoint that was being written is: then it is recorded, and the program's hook called. With `wait`,
 * wait for it. A failure is that of the checkpoint. */
ls_status ls_saver_collect(ls_saver *saver, int wait);

/* The weights that were evaluated last are the best by `metric`: keep them beside the checkpoints. They are written as
 * checkpoints are, and the next checkpoint, which counts the evaluation, waits for them: a position never knows of
 * better weights than there are on disk. */
ls_status ls_saver_keep_best(ls_saver *saver, const char *metric);

/* `status` of the steps or, with `test_failed`, of an evaluation. On one node, data that cannot be read any more leave
 * the weights as they were after the last step: these are saved before the run ends. */
ls_status ls_saver_rescue(ls_saver *saver, ls_status status, int test_failed);

/* On all nodes, for the same reason; `is_moved`: the directory is not where it was. */
ls_status ls_saver_report(ls_saver *saver, int *is_moved);

/* The run has come to `status`, which is returned with its message; a checkpoint that is being written becomes whole
 * first. The lock is dropped by the caller. */
ls_status ls_saver_end(ls_saver *saver, ls_status status);

#endif
