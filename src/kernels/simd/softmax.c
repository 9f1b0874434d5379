/*
 * softmax.c - softmax cross-entropy of rows that lie in blocks of channels.
 *
 * For one sample with logits z and label t, m = max z:
 *   loss = ln(sum_c e^(z_c - m)) - (z_t - m),   dloss/dz_c = e^(z_c - m) / sum - [c = t]
 * The sum runs in 16 lanes (class c in lane c % 16, classes in order), then over the lanes in order: the same for every
 * instruction set. A NaN or infinite logit makes the loss NaN or infinite and is never hidden.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/simd/explog.h"
#include "kernels/simd/parts.h"

#define WIDTH 16

/* Where a sample's logits lie: channel c of it at (c / panel) * stride + c % panel. */
typedef struct row {
	const float *logits;
	float *gradient; /* or NULL */
	int64_t stride;  /* floats from one block to the next */
	int panel, classes;
} row;

static int64_t place(const row *r, int class)
{
	return class / r->panel * r->stride + class % r->panel;
}

/* 16 logits from class `first` on; -inf past the last class. */
static void load(const row *r, int first, float z[WIDTH])
{
	const float *from = r->logits + place(r, first);
	const int count = r->classes - first;
	for (int i = 0; i < WIDTH; i++)
		z[i] = i < count ? from[i] : -INFINITY;
}

/* The first maximum; NaN logits are passed over here and show in the loss. */
static int first_maximum(const row *r)
{
	float lanes[WIDTH], z[WIDTH], maximum;
	load(r, 0, lanes);
	for (int c = WIDTH; c < r->classes; c += WIDTH) {
		load(r, c, z);
		for (int i = 0; i < WIDTH; i++)
			lanes[i] = z[i] > lanes[i] || lanes[i] != lanes[i] ? z[i] : lanes[i];
	}
	maximum = -INFINITY;
	for (int i = 0; i < WIDTH; i++)
		maximum = lanes[i] > maximum ? lanes[i] : maximum;
	for (int c = 0; c < r->classes; c += WIDTH) {
		load(r, c, z);
		for (int i = 0; i < WIDTH; i++)
			if (z[i] == maximum)
				return c + i < r->classes ? c + i : 0;
	}
	return 0; /* nothing but NaN */
}

/* sum_c e^(z_c - maximum); leaves the terms in the gradient's place. */
static float exponentials(const row *r, float maximum)
{
	float lanes[WIDTH] = { 0 }, z[WIDTH];
	for (int c = 0; c < r->classes; c += WIDTH) {
		load(r, c, z);
		for (int i = 0; i < WIDTH; i++) {
			z[i] = c + i < r->classes ? ls_exp_negative(z[i] - maximum) : 0;
			lanes[i] += z[i];
		}
		if (r->gradient)
			memcpy(r->gradient + place(r, c), z, sizeof z);
	}
	float sum = lanes[0];
	for (int i = 1; i < WIDTH; i++)
		sum += lanes[i];
	return sum;
}

/* gradient = term / sum - onehot, zero in the channels past the last class. */
static void finish_gradient(const row *r, float sum, int label)
{
	const int blocks = (r->classes + r->panel - 1) / r->panel;
	for (int c = 0; c < blocks * r->panel; c += WIDTH) {
		float *g = r->gradient + place(r, c);
		for (int i = 0; i < WIDTH; i++)
			g[i] = c + i < r->classes ? g[i] / sum : 0;
	}
	r->gradient[place(r, label)] -= 1.0f;
}

void LS_ISA_SYMBOL(ls_simd_softmax_xent)(const float *logits, int64_t n, int panel, int classes, const int32_t *labels,
					 int64_t begin, int64_t end, float *loss, uint8_t *correct, float *dlogits)
{
	for (int64_t i = begin; i < end; i++) {
		const row r = { .logits = logits + i * panel,
				.gradient = dlogits ? dlogits + i * panel : NULL,
				.stride = n * panel,
				.panel = panel,
				.classes = classes };
		int best = first_maximum(&r);
		float maximum = r.logits[place(&r, best)];
		float chosen = r.logits[place(&r, labels[i])] - maximum;
		float sum = exponentials(&r, maximum);
		loss[i] = ls_log_above_one(sum) - chosen;
		correct[i] = best == labels[i] && loss[i] == loss[i];
		if (r.gradient)
			finish_gradient(&r, sum, labels[i]);
	}
}
