/*
 * step.h - functions of step.c that trainer.c passes to the exchange.
 */
#ifndef LS_TRAINER_STEP_H
#define LS_TRAINER_STEP_H

#include "trainer/trainer.h"

/* Norm passes of a step: over the gradient for clipping, then the optimizer's own. */
int ls_trainer_norm_passes(const ls_trainer_options *options, const ls_optimizer_kind *kind);

/* What the exchange calls; its context is the trainer. */
void ls_trainer_set_hooks(ls_exchange_options *exchange, const ls_trainer_options *options);

#endif
