/*
 * hold.h - a step in two halves, backward and update, for loops that read gradients or change them.
 *
 *     ls_node_trainer_backward() a step up to the sums of its gradient, which are held back; again: they are added up
 *     ls_node_trainer_means()    the gradient as means over its samples, to be read and written
 *     ls_node_trainer_update()   clipping, the optimizer, one more update done
 *
 * Together they give the bits of ls_node_trainer_step(). On one node alone.
 */
#ifndef LS_TRAINER_HOLD_H
#define LS_TRAINER_HOLD_H

#include "trainer/trainer.h"

/* As ls_node_trainer_step(), but that no parameter changes. Running statistics do, as in any forward pass of training.
 * The first call allocates. */
ls_status ls_node_trainer_backward(ls_node_trainer *trainer, const ls_node_trainer_assignment *assign);

/* What sums must be multiplied with to become means. */
static inline float ls_node_trainer_held_scale(const ls_node_trainer *trainer)
{
	return (float)(1.0 / (double)trainer->held_samples);
}

/* From now on `held` has means, or zeros where there is no gradient; no backward before the next update. */
ls_status ls_node_trainer_means(ls_node_trainer *trainer);

/* Update with what is held. *norm: of the gradient, before clipping; NaN without clipping. */
ls_status ls_node_trainer_update(ls_node_trainer *trainer, double *norm);

void ls_node_trainer_zero_gradient(ls_node_trainer *trainer);

#endif
