/*
 * binary_cross_entropy.c - the loss of independent yes-or-no answers, given as logits.
 *
 *   loss = mean over channels of ln(1 + e^x[c]) - t[c] x[c];  dx[c] = (sigmoid(x[c]) - t[c]) / channels
 *
 * t is 1 in the label's channel and 0 elsewhere; with one channel it is the label, 0 or 1. A row is right when its
 * greatest logit is the label's, with one channel when x > 0 says what the label does.
 *
 * A term is softmax cross-entropy of the two logits 0 and x[c]: channels are put through that kernel a few at a time.
 */
#include "kernels/simd.h"
#include "ops/shape.h"

enum { AT_A_TIME = 32, PANEL = 16 };

/* Channels [first, first + count) of row i; returns the sum of their terms. */
static float add_terms(const ls_op *op, const ls_loss_rows *r, int64_t i, int first, int count)
{
	const ls_tensor *t = op->in[0];
	float pair[AT_A_TIME * PANEL] = { 0 }, term[AT_A_TIME], sum = 0;
	int32_t target[AT_A_TIME];
	uint8_t right[AT_A_TIME];

	for (int k = 0; k < count; k++) {
		pair[k * PANEL + 1] = op->x[0][ls_row_at(t, r->count, i, first + k)];
		target[k] = ls_label_target(t, r->labels[i], first + k) != 0;
	}
	ls_simd_get()->softmax_xent(pair, count, PANEL, 2, target, 0, count, r->scale / (float)t->channels, term, right,
				    pair);
	for (int k = 0; k < count; k++) {
		sum += term[k];
		if (r->dx)
			r->dx[ls_row_at(t, r->count, i, first + k)] = pair[k * PANEL + 1];
	}
	return sum;
}

static int is_right(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	const ls_tensor *t = op->in[0];
	if (t->channels == 1)
		return (op->x[0][ls_row_at(t, r->count, i, 0)] > 0) == (r->labels[i] != 0);
	return ls_row_maximum(t, op->x[0], r->count, i) == r->labels[i];
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *t = op->in[0];
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	int64_t begin, end;

	ls_team_range(member, r.count, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		float sum = 0;
		r.correct[i] = (uint8_t)is_right(op, &r, i); /* before dx, which may lie where x does */
		for (int c = 0; c < t->channels; c += AT_A_TIME)
			sum += add_terms(op, &r, i, c, t->channels - c < AT_A_TIME ? t->channels - c : AT_A_TIME);
		r.loss[i] = sum / (float)t->channels;
		r.correct[i] &= r.loss[i] == r.loss[i];
		for (int c = t->channels; r.dx && c < t->blocks * t->panel; c++)
			r.dx[ls_row_at(t, r.count, i, c)] = 0;
	}
}

const ls_op_type ls_op_binary_cross_entropy = {
	.name = "binary_cross_entropy",
	.formula =
		"loss = mean over c of ln(1 + e^x[c]) - t[c] x[c], t = onehot(label); one channel: t = label, 0 or 1",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.is_loss = 1,
	.lone_labels = 2,
	.shape = ls_check_loss_rows,
	.forward = forward,
	.cases = { { .channels = 7, .height = 1, .width = 1 },
		   { .channels = 1, .height = 1, .width = 1 },
		   { .domain = LS_MASKED, .channels = 37, .height = 7, .width = 1 } },
};
