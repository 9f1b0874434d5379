/*
 * trainer_inside.h - what the parts of a trainer know of each other: step, micro-batch and update.
 */
#ifndef LS_TRAINER_TRAINER_INSIDE_H
#define LS_TRAINER_TRAINER_INSIDE_H

#include "trainer/trainer.h"

/* trainer_step.c */

static inline ls_step_notes *ls_trainer_notes(ls_trainer *t, uint64_t step)
{
	return &t->notes[step % 4];
}

/* Wait until the step is complete, and take down its sums. */
ls_status ls_trainer_complete(ls_trainer *t, uint64_t step);

/* trainer_microbatch.c */

typedef struct ls_drive_job {
	ls_trainer *trainer;
	int wants_stop;
} ls_drive_job;

/* What the driver of a device does in a step; `context` is an ls_drive_job. */
void ls_trainer_drive(void *context, ls_member driver);

/* Without an exchange: the micro-batch is the step. */
ls_status ls_trainer_run_alone(ls_trainer *t, const ls_trainer_assignment *assign);

/* trainer_update.c */

/* The short cut: a layer's gradient is final, and so is the step's. `context` is an ls_device. */
void ls_trainer_update_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member);

/* Running statistics move; other sums are kept as they are. `node`: whose they are, -1 everybody's. */
void ls_trainer_update_extra(ls_trainer *t, double samples, int node, size_t begin, size_t end, const float *sums);

/* By every node for itself. The step's scale has no part in it, and on several nodes may be yet to come. */
void ls_trainer_decay_dead(ls_trainer *t);

/* What the exchange calls. */
void ls_trainer_update(void *context, size_t begin, size_t end, const float *sums, int participant);
size_t ls_trainer_figures(void *context, int round, size_t begin, size_t end);
void ls_trainer_measure(void *context, const ls_measuring *measuring);
void ls_trainer_measured(void *context, int round, const double *figures, size_t count);
void ls_trainer_act(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s);

#endif
