/*
 * simd.h - the loops of the update, one table of functions an instruction set (see base/isa.h).
 *
 * Every loop is element-wise, without contraction and without branches, so all tables give the same bits and so does
 * any split of a range. Pointers need no alignment. All of this is bound by memory: adam reads and writes 28 bytes an
 * element, sgd with momentum 20, lamb 28 and, in its second phase (which is sgd), 12.
 */
#ifndef LS_OPTIM_SIMD_H
#define LS_OPTIM_SIMD_H

#include <stddef.h>

/* Scalars of one sgd call. With p the parameter, b the momentum buffer and g the summed gradient:
 *     d = g*scale + l2*p;   b = carry*b + d;   p = p + step*(nesterov ? d + momentum*b : b)   [step = -lr] */
typedef struct ls_sgd_scalars {
	float scale, l2, carry, momentum, step;
} ls_sgd_scalars;

/* Scalars of one adam or adamw call:
 *     d = g*scale + l2*p;            m = beta1*m + rest1*d;          v = beta2*v + (rest2*d)*d
 *     p = keep*p + (step*m) / (sqrt(v) + epsilon)        [step = -lr*root2/(1-beta1^t), epsilon = eps*root2 with
 *                                                         root2 = sqrt(1-beta2^t): PyTorch's form, one division less]
 */
typedef struct ls_adam_scalars {
	float scale, l2, keep;
	float beta1, rest1, beta2, rest2;
	float step, epsilon;
} ls_adam_scalars;

/* Scalars of the first phase of lamb, which leaves the direction u in the gradient's place:
 *     d = g*scale;   m = beta1*m + rest1*d;   v = beta2*v + (rest2*d)*d;   u = (rise*m) / (sqrt(v) + epsilon) + decay*p
 *                                                         [rise = root2/(1-beta1^t), epsilon = eps*root2 as in adam] */
typedef struct ls_lamb_scalars {
	float scale, decay;
	float beta1, rest1, beta2, rest2;
	float rise, epsilon;
} ls_lamb_scalars;

#define LS_NORM_LANES 16

typedef struct ls_optim_simd {
	void (*sgd)(const ls_sgd_scalars *scalars, float *params, const float *grads, size_t count);
	void (*sgd_momentum)(const ls_sgd_scalars *scalars, float *params, const float *grads, float *buffer,
			     size_t count);
	void (*sgd_nesterov)(const ls_sgd_scalars *scalars, float *params, const float *grads, float *buffer,
			     size_t count);
	void (*adam)(const ls_adam_scalars *scalars, float *params, const float *grads, float *mean, float *square,
		     size_t count);
	void (*lamb)(const ls_lamb_scalars *scalars, const float *params, float *grads, float *mean, float *square,
		     size_t count);
	void (*multiply)(float factor, float *x, size_t count);
	double (*sum_squares)(const float *x, size_t count); /* in LS_NORM_LANES lanes combined as a fixed tree */
} ls_optim_simd;

/* The table of the instruction set in use; and of a given ls_isa (tests), NULL when this build lacks it. */
const ls_optim_simd *ls_optim_simd_get(void);
const ls_optim_simd *ls_optim_simd_of(int isa);

#endif
