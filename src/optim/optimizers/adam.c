/*
 * adam.c - Adam (Kingma and Ba 2015), as torch.optim.Adam without amsgrad.
 *
 *     d = g + weight_decay*p
 *     m = beta1*m + (1-beta1)*d;   v = beta2*v + (1-beta2)*d^2
 *     p = p - lr * (m/(1-beta1^t)) / (sqrt(v/(1-beta2^t)) + epsilon)
 */
#include "optim/adam.h"
#include "optim/table.h"

static void update(const ls_update *u)
{
	ls_adam_update(u, u->decay ? (float)u->hyper->weight_decay : 0.0f, 1.0f);
}

const ls_optimizer_kind LS_OPTIMIZER(adam) = {
	.name = "adam",
	.summary = "Adam; weight decay is added to the gradient",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.hypers = { { "beta1", 0.9 }, { "beta2", 0.999 }, { "epsilon", 1e-8 } },
	.decay = LS_DECAY_COUPLED,
	.update = update,
};
