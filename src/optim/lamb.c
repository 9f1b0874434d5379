/*
 * lamb.c - LAMB (You et al. 2020), for batches so large that one learning rate does not suit all layers.
 *
 *     m = beta1*m + (1-beta1)*g;   v = beta2*v + (1-beta2)*g^2
 *     u = mhat / (sqrt(vhat) + epsilon) + weight_decay*p
 *     p = p - lr * (|p| / |u|) * u                            norms over the whole parameter tensor
 *
 * Both corrections for the first steps are taken, as in the paper; the ratio is not limited. Biases and norms do not
 * decay and their ratio is 1, as in the published implementations. Dead weights are part of their tensor's norms and
 * shrink with it, so they are kept live (on 28x28 images 2.6 times the bytes of adamw for ResNet-18). The gradient is
 * not normalised first: --clip-norm does that.
 */
#include <float.h>
#include <math.h>

#include "optim/kinds.h"
#include "optim/power.h"
#include "optim/simd.h"

/* Epsilon stays above zero for the reason given in adam.c. */
static void prepare_lamb(const ls_update *u, float *grads)
{
	const ls_hyper *h = u->hyper;
	double root2 = sqrt(1.0 - ls_power(h->beta2, u->step));
	ls_lamb_scalars s = {
		.scale = u->scale,
		.decay = u->decay ? (float)h->weight_decay : 0.0f,
		.beta1 = (float)h->beta1,
		.rest1 = (float)(1.0 - h->beta1),
		.beta2 = (float)h->beta2,
		.rest2 = (float)(1.0 - h->beta2),
		.rise = (float)(root2 / (1.0 - ls_power(h->beta1, u->step))),
		.epsilon = fmaxf((float)(h->epsilon * root2), FLT_MIN),
	};
	ls_optim_simd_get()->lamb(&s, u->params, grads, u->slots[0], u->slots[1], u->count);
}

static void update_lamb(const ls_update *u)
{
	ls_sgd_scalars s = { .scale = 1.0f, .step = (float)(-u->lr * u->ratio) };
	ls_optim_simd_get()->sgd(&s, u->params, u->grads, u->count);
}

const ls_optimizer_kind ls_optimizer_lamb = {
	.name = "lamb",
	.summary = "Adam's direction, as long as the weights; biases and norms: no decay, ratio 1",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.coupled_decay = 0,
	.decay_everything = 0,
	.keeps_dead = 1,
	.update = update_lamb,
	.prepare = prepare_lamb,
};
