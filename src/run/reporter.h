/*
 * reporter.h - what a run prints and writes to files while it goes on. Only the first node reports.
 */
#ifndef LS_RUN_REPORTER_H
#define LS_RUN_REPORTER_H

#include "checkpoint/checkpoint.h"
#include "cluster/faults.h"
#include "metrics/metrics.h"
#include "metrics/progress.h"
#include "metrics/rate.h"
#include "run/best.h"
#include "run/setup.h"

enum { LS_REPORTER_NODES = 64 }; /* whose times are kept one by one */

typedef struct ls_reporter {
	const ls_setup *setup;
	ls_metrics *metrics;
	ls_progress *progress;
	ls_rate rate, tokens;        /* of samples; of tokens, where there are any */
	double epoch_start, epoch_s; /* when it began; how long its training took */
	uint64_t first_step;         /* of this process */
	uint64_t reached;            /* the last step that was recorded by the process before, where it was further */
	int has_test, has_end;       /* there are records of that step already */
	double started, earlier_s;   /* this process; what the run took before, NaN: not known */
	int has_trained;             /* a step of this process is accounted for */
	int has_target;              /* the target was reached before: */
	double target_accuracy, target_epochs, target_s;
} ls_reporter;

/* `started`: when this process began with the run. */
ls_status ls_reporter_begin(ls_reporter *reporter, const ls_setup *setup, uint64_t first_step, double started);
void ls_reporter_end(ls_reporter *reporter);

/* Nothing is written to the run's files any more: they are another process's. */
void ls_reporter_mute(ls_reporter *reporter);

/* Who takes part from `first_step` on, and where the state of that step is from, "snapshot", "checkpoint" or "new": a
 * line of kind "start", and one on the terminal where the run is continued. `fault`: what is going to happen to this
 * start on purpose. */
ls_status ls_reporter_start(ls_reporter *reporter, uint64_t generation, int from_memory, const ls_fault *fault);

/* All steps before `step` are accounted for, which took all nodes. The first one prints the line by which the supervisor
 * of an elastic run knows that its nodes train. */
void ls_reporter_trains(ls_reporter *reporter, uint64_t step);

/* A snapshot in memory of `step` stopped training for `cost_s`; the next one comes after `every` steps. */
ls_status ls_reporter_snapshot(ls_reporter *reporter, uint64_t step, uint64_t every, double cost_s);

/* One step done: the time it took, and what it came to. `at` counts it already. */
ls_status ls_reporter_step(ls_reporter *reporter, const ls_ckpt_progress *at, double seconds,
			   const ls_node_trainer_report *report);

/* An epoch's last step done: keep its loss and accuracy. `at` still counts the epoch. */
ls_status ls_reporter_epoch(ls_reporter *reporter, const ls_ckpt_progress *at);

/* The line of an epoch, after its evaluation; `test` may be NULL. People count epochs from 1, files from 0. */
void ls_reporter_epoch_line(ls_reporter *reporter, uint64_t epoch, const ls_eval_result *test);
/* The line of an evaluation that no epoch's end brought about: after a resume or at the end; or after `step`, by
 * options.eval_steps. The epoch that is under way does not count its time. */
void ls_reporter_test_line(ls_reporter *reporter, const ls_eval_result *test);
void ls_reporter_step_test_line(ls_reporter *reporter, uint64_t step, const ls_eval_result *test);

/* Seconds that the run has taken so far, in all its processes; NaN where a record of an earlier one is missing. */
double ls_reporter_seconds(const ls_reporter *reporter);

/* Keep the fingerprint of what was saved as a checkpoint of `step`, and of what the run ended with. `seconds` of the
 * run had passed at that step; training stood still for `stall_s` of them. */
ls_status ls_reporter_checkpoint(ls_reporter *reporter, uint64_t step, uint64_t fingerprint, double seconds,
				 double stall_s);
ls_status ls_reporter_conclude(ls_reporter *reporter, uint64_t step, uint64_t fingerprint);

/* Whether the run reached options.to_accuracy, and after which time: a line, and if it did for the first time, a
 * record. */
ls_status ls_reporter_target(ls_reporter *reporter, const ls_ckpt_progress *at, double accuracy);

/* Keep an evaluation of the weights of `at`, unless there is a record already. */
ls_status ls_reporter_test(ls_reporter *reporter, const ls_ckpt_progress *at, uint64_t epoch,
			   const ls_eval_result *test, const ls_best *best);

/* Which evaluation of a run that ends is the best: a line, and where no better ones came any
 * more, another and a record. */
ls_status ls_reporter_best(ls_reporter *reporter, const ls_ckpt_progress *at, const ls_best *best);

#endif
