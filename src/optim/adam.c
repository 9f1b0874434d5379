/*
 * adam.c - Adam (Kingma and Ba 2015) as torch.optim.Adam without amsgrad, and AdamW (Loshchilov and Hutter 2019).
 *
 * They differ in weight decay alone. Adam adds weight_decay*p to the gradient; AdamW shrinks the parameter itself,
 * p = (1 - lr*weight_decay)*p, before the step, and here micro-batches biases and norms alone. The loop knows both
 * forms.
 */
#include <float.h>
#include <math.h>

#include "optim/kinds.h"
#include "optim/power.h"
#include "optim/simd.h"

/* Everything but decay. Bias corrections are taken in double, once. Epsilon is
 * kept above zero so that 0/0 cannot arise where there was never a gradient: where there was one, sqrt(v) is too large
 * for FLT_MIN to change the sum. */
static ls_adam_scalars make_scalars(const ls_update *u)
{
	const ls_hyper *h = u->hyper;
	double correction1 = 1.0 - ls_power(h->beta1, u->step);
	double root2 = sqrt(1.0 - ls_power(h->beta2, u->step));
	return (ls_adam_scalars){
		.scale = u->scale,
		.keep = 1.0f,
		.beta1 = (float)h->beta1,
		.rest1 = (float)(1.0 - h->beta1),
		.beta2 = (float)h->beta2,
		.rest2 = (float)(1.0 - h->beta2),
		.step = (float)(-u->lr * root2 / correction1),
		.epsilon = fmaxf((float)(h->epsilon * root2), FLT_MIN),
	};
}

static void update_adam(const ls_update *u)
{
	ls_adam_scalars s = make_scalars(u);
	if (u->decay)
		s.l2 = (float)u->hyper->weight_decay;
	ls_optim_simd_get()->adam(&s, u->params, u->grads, u->slots[0], u->slots[1], u->count);
}

static void update_adamw(const ls_update *u)
{
	ls_adam_scalars s = make_scalars(u);
	if (u->decay)
		s.keep = (float)(1.0 - u->lr * u->hyper->weight_decay);
	ls_optim_simd_get()->adam(&s, u->params, u->grads, u->slots[0], u->slots[1], u->count);
}

const ls_optimizer_kind ls_optimizer_adam = {
	.name = "adam",
	.summary = "Adam; weight decay enters the gradient",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.coupled_decay = 1,
	.decay_everything = 1,
	.update = update_adam,
};

const ls_optimizer_kind ls_optimizer_adamw = {
	.name = "adamw",
	.summary = "Adam with decoupled weight decay, on weights only",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.coupled_decay = 0,
	.decay_everything = 0,
	.update = update_adamw,
};
