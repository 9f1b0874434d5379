/*
 * saver.h - the checkpoints of a run that goes on, and its directory, which may be moved or removed meanwhile.
 *
 *     setup, reporter, hooks, position  of the step loop, borrowed
 *     ls_saver_begin()               claim the directory, load what is continued
 *     ls_saver_look()                now and then: is the directory still there?
 *     ls_saver_save()                a checkpoint of `position`, by all nodes
 *     ls_saver_rescue()              what has been trained when the data cannot be read any more
 *     ls_saver_report()              the run fails where its directory was moved or removed
 */
#ifndef LS_RUN_SAVER_H
#define LS_RUN_SAVER_H

#include "run/hooks.h"
#include "run/lock.h"
#include "run/reporter.h"
#include "run/setup.h"

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
} ls_saver;

/* Of the step before `position`, whose epoch is that of the next step. */
static inline uint64_t ls_last_epoch(const ls_ckpt_progress *position)
{
	return position->epoch_step > 0 || position->epoch == 0 ? position->epoch : position->epoch - 1;
}

ls_status ls_saver_begin(ls_saver *saver);

/* A run whose directory is not where it was ends with the step it is at. Costs a call of stat(). */
void ls_saver_look(ls_saver *saver);

/* "the last checkpoint is kept", for a run that fails. */
const char *ls_saver_kept(const ls_saver *saver);

/* Called by all nodes, when the step is complete. Weights that give no finite loss are refused: they must not replace a
 * good checkpoint. */
ls_status ls_saver_save(ls_saver *saver);

/* `status` of the steps or, with `test_failed`, of an evaluation. On one node, data that cannot be read any more leave
 * the weights as they were after the last step: these are saved before the run ends. */
ls_status ls_saver_rescue(ls_saver *saver, ls_status status, int test_failed);

/* On all nodes, for the same reason; `is_moved`: the directory is not where it was. */
ls_status ls_saver_report(ls_saver *saver, int *is_moved);

#endif
