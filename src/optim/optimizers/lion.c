/*
 * lion.c - Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms"): the sign of a momentum.
 *
 *     u = sign(beta1*m + (1-beta1)*g)
 *     p = (1 - lr*weight_decay)*p - lr*u
 *     m = beta2*m + (1-beta2)*g
 *
 * Every element moves by lr, so lr is 3 to 10 times smaller than Adam's, and weight_decay as much larger. The sign of 0
 * is 0; that of NaN is NaN, so that a gradient that is no number does not go unnoticed. Half of Adam's state. Memory
 * traffic per element: 20 bytes.
 */
#include "optim/table.h"

static void update(const ls_update *u)
{
	const ls_hyper *h = u->hyper;
	const float beta1 = (float)h->beta1, rest1 = (float)(1.0 - h->beta1);
	const float beta2 = (float)h->beta2, rest2 = (float)(1.0 - h->beta2);
	const float keep = u->decay ? (float)(1.0 - u->lr * h->weight_decay) : 1.0f, step = (float)-u->lr;
	const float scale = u->scale;
	float *restrict params = u->params, *restrict mean = u->slots[0];
	const float *restrict grads = u->grads;
	for (size_t i = 0; i < u->count; i++) {
		float d = grads[i] * scale;
		float c = beta1 * mean[i] + rest1 * d;
		float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c;
		mean[i] = beta2 * mean[i] + rest2 * d;
		params[i] = keep * params[i] + step * sign;
	}
}

const ls_optimizer_kind LS_OPTIMIZER(lion) = {
	.name = "lion",
	.summary = "Lion: steps of one size, by the sign of a momentum",
	.slots = 1,
	.slot_names = { "exp_avg" },
	.hypers = { { "beta1", 0.9 }, { "beta2", 0.99 } },
	.decay = LS_DECAY_DECOUPLED,
	.update = update,
};
