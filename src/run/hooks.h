/*
 * hooks.h - a run reports what happens to its program, which decides whether it goes on (lockstep/hooks.h); and
 * requests to stop.
 *
 * The first failure of a hook is kept: the run ends as if it was stopped, and the failure is its status.
 */
#ifndef LS_RUN_HOOKS_H
#define LS_RUN_HOOKS_H

#include <lockstep/hooks.h>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "run/setup.h"

/* Requests to stop a run since it began: by its handle, or by ls_train_stop(), which asks all. */
typedef struct ls_stop_watch {
	const ls_stop *stop; /* NULL: it has none */
	unsigned before;     /* how often all had been asked */
} ls_stop_watch;

/* LS_EINVALID: the handle was freed. */
ls_status ls_stop_watch_begin(ls_stop_watch *out, const ls_stop *stop);
int ls_stop_watch_is_requested(const ls_stop_watch *watch);

typedef struct ls_hooks {
	ls_train_hooks hooks; /* the program's; zeros: it has none */
	ls_status status;     /* that a hook ended the run with */
	const char *which;    /* hook */
} ls_hooks;

void ls_hooks_init(ls_hooks *hooks, const ls_train_hooks *given);

/* `position` counts the step already; of an epoch it is the state before the next epoch begins. */
void ls_hooks_step(ls_hooks *hooks, const ls_setup *setup, const ls_ckpt_progress *position, double seconds,
		   const ls_node_trainer_report *report);
void ls_hooks_epoch(ls_hooks *hooks, const ls_setup *setup, const ls_ckpt_progress *position, double seconds,
		    const ls_eval_result *test);
/* `metric`: NaN where evaluations are not compared. */
void ls_hooks_test(ls_hooks *hooks, const ls_ckpt_progress *position, uint64_t epoch, const ls_eval_result *test,
		   double metric, int is_best);
void ls_hooks_checkpoint(ls_hooks *hooks, uint64_t step, const char *run, uint64_t fingerprint);

/* Where the run's lines go. */
ls_log_sink ls_hooks_sink(const ls_train_hooks *given, int quiet);

#endif
