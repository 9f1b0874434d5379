/*
 * sgd.c - stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0.
 *
 *     d = g + weight_decay*p;   b = momentum*b + d   (b = d on the first step)
 *     p = p - lr*b              or with Nesterov     p = p - lr*(d + momentum*b)
 */
#include "optim/kinds.h"
#include "optim/simd.h"

static void update_sgd(const ls_update *u)
{
	const ls_optim_simd *simd = ls_optim_simd_get();
	const ls_hyper *h = u->hyper;
	ls_sgd_scalars s = {
		.scale = u->scale,
		.l2 = u->decay ? (float)h->weight_decay : 0.0f,
		.carry = u->step == 1 ? 0.0f : (float)h->momentum,
		.momentum = (float)h->momentum,
		.step = (float)-u->lr,
	};
	if (h->momentum == 0.0)
		simd->sgd(&s, u->params, u->grads, u->count);
	else if (h->nesterov)
		simd->sgd_nesterov(&s, u->params, u->grads, u->slots[0], u->count);
	else
		simd->sgd_momentum(&s, u->params, u->grads, u->slots[0], u->count);
}

const ls_optimizer_kind ls_optimizer_sgd = {
	.name = "sgd",
	.summary = "gradient descent with momentum (Nesterov's on request)",
	.slots = 1,
	.slot_names = { "momentum_buffer" },
	.coupled_decay = 1,
	.decay_everything = 1,
	.update = update_sgd,
};
