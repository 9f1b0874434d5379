/*
 * sgd.c - stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0.
 *
 *     d = g + weight_decay*p
 *     b = momentum*b + d                  (b = d on the first step)
 *     p = p - lr*b,                       with Nesterov p = p - lr*(d + momentum*b)
 *
 * With momentum 0 the buffer b is not touched. Memory traffic per element: 20 bytes, 12 without momentum.
 */
#include "optim/table.h"

typedef struct scalars {
	float scale, decay, carry, momentum, step;
} scalars;

static void plain(scalars s, float *restrict params, const float *restrict grads, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.decay * params[i];
		params[i] = params[i] + s.step * d;
	}
}

static void with_momentum(scalars s, float *restrict params, const float *restrict grads, float *restrict buffer,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.decay * params[i];
		float b = s.carry * buffer[i] + d;
		buffer[i] = b;
		params[i] = params[i] + s.step * b;
	}
}

static void with_nesterov(scalars s, float *restrict params, const float *restrict grads, float *restrict buffer,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float d = grads[i] * s.scale + s.decay * params[i];
		float b = s.carry * buffer[i] + d;
		buffer[i] = b;
		params[i] = params[i] + s.step * (d + s.momentum * b);
	}
}

static void update(const ls_update *u)
{
	const ls_hyper *h = u->hyper;
	scalars s = {
		.scale = u->scale,
		.decay = u->decay ? (float)h->weight_decay : 0.0f,
		.carry = u->step == 1 ? 0.0f : (float)h->momentum,
		.momentum = (float)h->momentum,
		.step = (float)-u->lr,
	};
	if (h->momentum == 0.0)
		plain(s, u->params, u->grads, u->count);
	else if (h->nesterov)
		with_nesterov(s, u->params, u->grads, u->slots[0], u->count);
	else
		with_momentum(s, u->params, u->grads, u->slots[0], u->count);
}

const ls_optimizer_kind LS_OPTIMIZER(sgd) = {
	.name = "sgd",
	.summary = "stochastic gradient descent with momentum",
	.slots = 1,
	.slot_names = { "momentum_buffer" },
	.hypers = { { "momentum", 0.9 }, { "nesterov", 0 } },
	.decay = LS_DECAY_COUPLED,
	.update = update,
};
