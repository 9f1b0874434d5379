/*
 * adamw.c - Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW.
 *
 *     m = beta1*m + (1-beta1)*g;   v = beta2*v + (1-beta2)*g^2
 *     p = (1 - lr*weight_decay)*p - lr * (m/(1-beta1^t)) / (sqrt(v/(1-beta2^t)) + epsilon)
 *
 * Unlike PyTorch's, which decays every parameter it is given, it leaves biases and normalisations alone.
 */
#include "optim/adam.h"
#include "optim/table.h"

static void update(const ls_update *u)
{
	ls_adam_update(u, 0.0f, u->decay ? (float)(1.0 - u->lr * u->hyper->weight_decay) : 1.0f);
}

const ls_optimizer_kind LS_OPTIMIZER(adamw) = {
	.name = "adamw",
	.summary = "Adam with decoupled weight decay",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.hypers = { { "beta1", 0.9 }, { "beta2", 0.999 }, { "epsilon", 1e-8 } },
	.decay = LS_DECAY_DECOUPLED,
	.update = update,
};
