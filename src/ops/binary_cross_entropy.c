/*
 * binary_cross_entropy.c - the loss of independent yes-or-no answers, given as logits.
 *
 *   loss = mean over channels of ln(1 + e^x[c]) - t[c] x[c];  dx[c] = (sigmoid(x[c]) - t[c]) / C        x, t (rows, C)
 *
 * t is the row's float targets, each from 0 to 1: the row is right when x > 0 says for every channel what t > 0.5 does.
 * Of a label t is 1 in the label's channel and 0 elsewhere, and a row is right when its greatest logit is the label's;
 * with one channel t is the label, 0 or 1.
 *
 * A term is softmax cross-entropy of the two logits 0 and x[c], whose label is t rounded: channels are put through that
 * kernel a few at a time. What rounding left, d = t - label, adds -d x[c] to the term.
 */
#include "kernels/simd.h"
#include "ops/shape.h"

enum { AT_A_TIME = 32, PANEL = 16 };

/* Channels [first, first + count) of row i; returns the sum of their terms. */
static float add_terms(const ls_op *op, const ls_loss_rows *r, int64_t i, int first, int count)
{
	const ls_tensor *t = op->in[0];
	float pair[AT_A_TIME * PANEL] = { 0 }, term[AT_A_TIME], x[AT_A_TIME], left[AT_A_TIME], sum = 0;
	float scale = r->scale / (float)t->channels;
	int32_t target[AT_A_TIME];
	uint8_t right[AT_A_TIME];

	for (int k = 0; k < count; k++) {
		float wanted = ls_loss_target(t, r, i, first + k);
		pair[k * PANEL + 1] = x[k] = op->x[0][ls_row_at(t, r->count, i, first + k)];
		target[k] = wanted > 0.5f;
		left[k] = wanted - (float)target[k];
	}
	ls_simd_get()->softmax_xent(pair, count, PANEL, 2, target, 0, count, scale, term, right, pair);
	for (int k = 0; k < count; k++) {
		sum += term[k] - left[k] * x[k];
		if (r->dx)
			r->dx[ls_row_at(t, r->count, i, first + k)] = pair[k * PANEL + 1] - left[k] * scale;
	}
	return sum;
}

static float row(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	int channels = op->in[0]->channels;
	float sum = 0;

	for (int c = 0; c < channels; c += AT_A_TIME)
		sum += add_terms(op, r, i, c, channels - c < AT_A_TIME ? channels - c : AT_A_TIME);
	return sum;
}

static int is_right(float x, float target)
{
	return (x > 0) == (target > 0.5f);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_channel_loss_forward(op, pass, member, &(ls_channel_loss){ is_right, row, 1 });
}

const ls_op_type ls_op_binary_cross_entropy = {
	.name = "binary_cross_entropy",
	.formula = "loss = mean over c of ln(1 + e^x[c]) - t[c] x[c], t = targets, or onehot(label); one channel: t = "
		   "label, 0 or 1",
	LS_INPUTS(1, "x"),
	.is_loss = 1,
	.lone_labels = 2,
	.shape = ls_check_loss_rows,
	.forward = forward,
	.cases = { LS_CASE_IMAGES(7, 1, 1),
		   LS_CASE_IMAGES(1, 1, 1),
		   LS_CASE_IMAGES(37, 1, 1, .targets = 1),
		   { .domain = LS_MASKED, .channels = 37, .height = 7, .width = 1 } },
};
