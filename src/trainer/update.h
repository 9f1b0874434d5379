/*
 * update.h - the update of a step: what the exchange calls when sums are complete, and what step.c calls where there is
 * no exchange.
 */
#ifndef LS_TRAINER_UPDATE_H
#define LS_TRAINER_UPDATE_H

#include "trainer/trainer.h"

/* What is known of one of the last steps. */
static inline ls_step_record *ls_node_trainer_record_of(ls_node_trainer *trainer, uint64_t step)
{
	return &trainer->records[step % 4];
}

/* Norm passes of a step: over the gradient for clipping, then the optimizer's own. */
int ls_node_trainer_norm_passes(const ls_node_trainer_options *options, const ls_optimizer_kind *kind);

/* Whether that is the pass for clipping, and what it does: the record gets the gradient's norm and scale. */
int ls_node_trainer_is_clipping(const ls_node_trainer *trainer, int pass);
void ls_node_trainer_clip(const ls_node_trainer *trainer, ls_step_record *record, const double *squares, size_t count);

/* The optimizer's pass of a step, with a gradient whose float `grads_begin` is at `grads`. */
ls_optimizer_pass ls_node_trainer_pass(ls_node_trainer *trainer, uint64_t step, double scale, const float *grads,
				       size_t grads_begin);

/* In a step that holds its gradient back (hold.h): the sums of [begin, end) over its micro-batches, and, as
 * ls_exec_microbatch.ready, a layer's without an exchange. */
void ls_node_trainer_hold(ls_node_trainer *trainer, size_t begin, size_t end, const float *sums);
void ls_node_trainer_hold_layer(void *context, size_t begin, size_t end, const float *grads, ls_member member);

/* What the exchange calls; its context is the trainer. */
void ls_node_trainer_set_hooks(ls_exchange_options *exchange, const ls_node_trainer_options *options);

/* ls_exec_microbatch.ready without an exchange: a layer's gradient is final, and so is the step's. Host threads share
 * it. `context` is the driver. */
void ls_node_trainer_update_layer(void *context, size_t begin, size_t end, const float *grads, ls_member member);

/* Sums [begin, end) over the statistics of micro-batches, of `samples` samples: running statistics move, step
 * statistics are kept as they are. `node`: whose they are, -1 all nodes'. */
void ls_node_trainer_update_stats(ls_node_trainer *trainer, double samples, int node, size_t begin, size_t end,
				  const float *sums);

/* Weights that no input reaches only decay: by every node for itself, and without the step's scale, which on several
 * nodes may be yet to come. */
void ls_node_trainer_decay_unreachable(ls_node_trainer *trainer);

#endif
