/*
 * best.h - which evaluation of a run is the best, and whether better ones still come.
 *
 *     ls_best_begin()      the metric that evaluations are compared by, once the model is known
 *     ls_best_evaluate()   an evaluation of the run's weights, judged
 *     ls_best_has_ended()  options.early_stop evaluations were no better than one before them
 *
 * What is kept is never replaced by something worse, whenever the run was killed: a resumed run asks its file of the
 * best weights, which may be of an evaluation after its checkpoint.
 *
 * The results are in the position of the run (ls_ckpt_progress), which checkpoints keep: a run that is resumed ends
 * after the same evaluation. Every node has the same result of an evaluation, so all nodes judge alike.
 */
#ifndef LS_RUN_BEST_H
#define LS_RUN_BEST_H

#include "checkpoint/checkpoint.h"
#include "evaluation/test_metrics.h"
#include "run/setup.h"

typedef struct ls_best {
	const ls_setup *setup;        /* borrowed */
	const ls_test_metric *metric; /* NULL: nothing is compared */
	ls_class_tally *tally;        /* where the metric follows from one */
	double value;                 /* of the newest evaluation */
	int is_new;                   /* the newest evaluation is the best */
} ls_best;

/* Before the first step; with options that need no evaluations it does nothing. */
ls_status ls_best_begin(ls_best *best, const ls_setup *setup);
void ls_best_end(ls_best *best);

/* On all nodes, with their weights of `position`. An evaluation that is not due, at the end of a run, may be the best,
 * but does not count for options.early_stop: a run that is prolonged ends where it would have. */
ls_status ls_best_evaluate(ls_best *best, ls_ckpt_progress *position, int is_due, ls_eval_result *out);

/* A position of a run with options `was`: what was best by another metric is forgotten, which is logged. */
void ls_best_forget(ls_ckpt_progress *position, const ls_train_options *was, const ls_train_options *now);

/* A position that is resumed from: what is in the run's best.safetensors is the best, also where the checkpoint was
 * written before that evaluation. Of the first node. */
ls_status ls_best_recall(ls_ckpt_progress *position, const ls_setup *setup);

int ls_best_has_ended(const ls_best *best, const ls_ckpt_progress *position);

#endif
