/*
 * lamb.c - LAMB (You et al. 2020): Adam's direction, scaled by the ratio of weight norm to update norm, for batches so
 * large that one learning rate does not suit all layers.
 *
 *     m = beta1*m + (1-beta1)*g;   v = beta2*v + (1-beta2)*g^2
 *     u = (m/(1-beta1^t)) / (sqrt(v/(1-beta2^t)) + epsilon) + weight_decay*p
 *     p = p - lr * (|p| / |u|) * u                            norms over the whole parameter tensor
 *
 * The ratio is not limited. It is 1 for biases and normalisations, which do not decay either, as in the published
 * implementations. The gradient is not normalised first: --clip-norm does that. Memory traffic per element: 28 bytes
 * for the direction, 12 for the update.
 *
 * Unreachable weights (params.h) are part of their tensor's norms and shrink with it, so they are updated like any
 * other: on 28x28 images 2.6 times the bytes of adamw for ResNet-18.
 */
#include "optim/adam.h"
#include "optim/table.h"

static void direction(const ls_update *u, float *restrict grads)
{
	const ls_moments s = ls_moments_of(u);
	const float rise = (float)(s.root2 / s.correction1), scale = u->scale;
	const float decay = u->decay ? (float)u->hyper->weight_decay : 0.0f;
	const float *restrict params = u->params;
	float *restrict mean = u->slots[0], *restrict square = u->slots[1];
	for (size_t i = 0; i < u->count; i++) {
		float d = grads[i] * scale;
		float m = s.beta1 * mean[i] + s.rest1 * d;
		float v = s.beta2 * square[i] + (s.rest2 * d) * d;
		mean[i] = m;
		square[i] = v;
		grads[i] = (rise * m) / (sqrtf(v) + s.epsilon) + decay * params[i];
	}
}

static void update(const ls_update *u)
{
	const float step = (float)(-u->lr * u->ratio);
	float *restrict params = u->params;
	const float *restrict directions = u->grads;
	for (size_t i = 0; i < u->count; i++)
		params[i] = params[i] + step * directions[i];
}

const ls_optimizer_kind LS_OPTIMIZER(lamb) = {
	.name = "lamb",
	.summary = "Adam's direction, scaled by the ratio of weight norm to update norm",
	.slots = 2,
	.slot_names = { "exp_avg", "exp_avg_sq" },
	.hypers = { { "beta1", 0.9 }, { "beta2", 0.999 }, { "epsilon", 1e-8 } },
	.decay = LS_DECAY_DECOUPLED,
	.direction = direction,
	.update = update,
};
