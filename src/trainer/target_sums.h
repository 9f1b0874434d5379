/*
 * target_sums.h - sums over samples with float targets, from which the metrics of regression and of several labels
 * follow.
 *
 *   regression    absolute error, squared error, target, its square
 *   multi-label   true positives, false positives, false negatives, positives; a label is predicted where its logit > 0
 *
 * Sums are kept per output and micro-batch, and added in micro-batch order: the same bits on any layout.
 */
#ifndef LS_TRAINER_TARGET_SUMS_H
#define LS_TRAINER_TARGET_SUMS_H

#include <lockstep/train.h>

#include "data/loader.h"

typedef struct ls_target_sums {
	double of[4];
} ls_target_sums;

/* Of a micro-batch: out (outputs) is written. */
void ls_target_sums_count(ls_task task, const ls_microbatch *microbatch, const float *logits, ls_target_sums *out);

/* out += more, (outputs) */
void ls_target_sums_add(ls_target_sums *out, const ls_target_sums *more, int outputs);

/* What they come to for one output; `scale` is a unit of the target in its own units. */
void ls_target_score_of(ls_task task, const ls_target_sums *sums, double samples, double scale, ls_target_score *out);

/* The means over outputs, into the result's metrics; scale (outputs), NULL: all 1. */
void ls_target_sums_conclude(ls_task task, const ls_target_sums *sums, int outputs, const double *scale,
			     ls_eval_result *out);

#endif
