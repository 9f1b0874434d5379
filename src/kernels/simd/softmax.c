/*
 * softmax.c - softmax cross-entropy of rows that lie in blocks of channels.
 *
 * For one sample with logits z and label t, m = max z:
 *   loss = ln(sum_c e^(z_c - m)) - (z_t - m),   dloss/dz_c = e^(z_c - m) / sum - [c = t], times the caller's scale
 * The sum runs in 16 lanes (class c in lane c % 16, classes in order), then over the lanes in order: the same for every
 * instruction set. A NaN or infinite logit makes the loss NaN or infinite and is never hidden.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/simd/explog.h"
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

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

/* 16 logits from class `first` on; where the classes end before that, a copy in `tail` that goes on with -inf. */
static const float *chunk(const row *r, int first, float tail[WIDTH])
{
	const float *z = r->logits + place(r, first);
	const int count = r->classes - first;
	if (count >= WIDTH)
		return z;
	for (int i = 0; i < WIDTH; i++)
		tail[i] = i < count ? z[i] : -INFINITY;
	return tail;
}

/*
 * The first class with the greatest logit, NaN passed over; class 0 when nothing is greater than -inf. Each lane keeps
 * its own first maximum and where it was; of equal lanes the one that was first wins.
 */
static int first_maximum(const row *r)
{
	float tail[WIDTH], maximum = -INFINITY;
	ls_vf greatest[WIDTH / LS_LANES];
	ls_vi where[WIDTH / LS_LANES];
	int best = 0;
	for (int v = 0; v < WIDTH / LS_LANES; v++) {
		greatest[v] = ls_vf_set(-INFINITY);
		where[v] = (ls_vi){ 0 };
	}
	for (int c = 0; c < r->classes; c += WIDTH) {
		const float *z = chunk(r, c, tail);
		for (int v = 0; v < WIDTH / LS_LANES; v++) {
			ls_vf value = ls_vf_load(z + v * LS_LANES);
			ls_vi wins = value > greatest[v];
			greatest[v] = ls_vf_select(wins, value, greatest[v]);
			where[v] = ls_vi_select(wins, c + (ls_vi){ 0 }, where[v]);
		}
	}
	for (int i = 0; i < WIDTH; i++) {
		float value = greatest[i / LS_LANES][i % LS_LANES];
		int class = where[i / LS_LANES][i % LS_LANES] + i;
		if (value > maximum || (value == maximum && value > -INFINITY && class < best)) {
			maximum = value;
			best = class;
		}
	}
	return best;
}

/* sum_c e^(z_c - maximum); leaves the terms in the gradient's place. */
static float exponentials(const row *r, float maximum)
{
	float lanes[WIDTH] = { 0 }, tail[WIDTH], term[WIDTH];
	for (int c = 0; c < r->classes; c += WIDTH) {
		const float *z = chunk(r, c, tail);
		for (int i = 0; i < WIDTH; i++) {
			term[i] = ls_exp_negative(z[i] - maximum);
			lanes[i] += term[i];
		}
		if (r->gradient)
			memcpy(r->gradient + place(r, c), term, sizeof(term));
	}
	float sum = lanes[0];
	for (int i = 1; i < WIDTH; i++)
		sum += lanes[i];
	return sum;
}

static int at_least(int a, int b)
{
	return a > b ? a : b;
}

/* gradient = (term / sum - onehot) * scale, zero in the channels past the last class. */
static void finish_gradient(const row *r, float sum, int label, float scale)
{
	const int blocks = (r->classes + r->panel - 1) / r->panel;
	for (int c = 0; c < blocks * r->panel; c += WIDTH) {
		float *g = r->gradient + place(r, c);
		for (int i = 0; i < WIDTH; i++)
			g[i] = g[i] / sum * scale;
		for (int i = at_least(r->classes - c, 0); i < WIDTH; i++)
			g[i] = 0;
	}
	float *chosen = r->gradient + place(r, label);
	*chosen -= scale;
}

void LS_ISA_SYMBOL(ls_simd_softmax_xent)(const float *logits, int64_t n, int panel, int classes, const int32_t *labels,
					 int64_t begin, int64_t end, float scale, float *loss, uint8_t *correct,
					 float *dlogits)
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
			finish_gradient(&r, sum, labels[i], scale);
	}
}
