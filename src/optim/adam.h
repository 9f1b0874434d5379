/*
 * adam.h - what adam, adamw and lamb have in common: running means of the gradient and of its square.
 *
 *     m = beta1*m + (1-beta1)*d;   v = beta2*v + (1-beta2)*d^2
 *     direction  (m/c1) / (sqrt(v/c2) + epsilon)                         with the bias corrections c = 1 - beta^step
 *              = (root2/c1)*m / (sqrt(v) + epsilon*root2)                root2 = sqrt(c2)
 *
 * The second form is PyTorch's: one division less per element. Corrections are taken in double, once per call.
 */
#ifndef LS_OPTIM_ADAM_H
#define LS_OPTIM_ADAM_H

#include <float.h>
#include <math.h>

#include "optim/optimizer.h"
#include "optim/power.h"

typedef struct ls_moments {
	float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
	float epsilon;                    /* times root2 */
	double correction1, root2;
} ls_moments;

/* Epsilon is kept above zero so that 0/0 cannot arise where there was never a gradient: where there was one, sqrt(v) is
 * too large for FLT_MIN to change the sum. */
static inline ls_moments ls_moments_of(const ls_update *u)
{
	const ls_hyper *h = u->hyper;
	double root2 = sqrt(1.0 - ls_power(h->beta2, u->step));
	return (ls_moments){
		.beta1 = (float)h->beta1,
		.rest1 = (float)(1.0 - h->beta1),
		.beta2 = (float)h->beta2,
		.rest2 = (float)(1.0 - h->beta2),
		.epsilon = fmaxf((float)(h->epsilon * root2), FLT_MIN),
		.correction1 = 1.0 - ls_power(h->beta1, u->step),
		.root2 = root2,
	};
}

/* One call of adam (coupled: d = g + coupled*p) or adamw (p = keep*p - ...). The decay that is switched off is a
 * product with 0, or with 1, which is exact. Memory traffic per element: 28 bytes. */
static inline void ls_adam_update(const ls_update *u, float coupled, float keep)
{
	const ls_moments s = ls_moments_of(u);
	const float step = (float)(-u->lr * s.root2 / s.correction1), scale = u->scale;
	float *restrict params = u->params, *restrict mean = u->slots[0], *restrict square = u->slots[1];
	const float *restrict grads = u->grads;
	for (size_t i = 0; i < u->count; i++) {
		float d = grads[i] * scale + coupled * params[i];
		float m = s.beta1 * mean[i] + s.rest1 * d;
		float v = s.beta2 * square[i] + (s.rest2 * d) * d;
		mean[i] = m;
		square[i] = v;
		params[i] = keep * params[i] + (step * m) / (sqrtf(v) + s.epsilon);
	}
}

#endif
