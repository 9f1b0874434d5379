/*
 * mean_squared_error.c - the loss of regression.
 *
 *   loss = mean over channels of (x[c] - t[c])^2;  dx[c] = 2 (x[c] - t[c]) / channels
 *
 * t is 1 in the label's channel and 0 elsewhere; with one channel it is the label, a number. A row is right when its
 * greatest channel is the label's, with one channel when x rounds to the label.
 */
#include <limits.h>

#include "ops/shape.h"

static int is_right(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	const ls_tensor *t = op->in[0];
	float off = op->x[0][ls_row_at(t, r->count, i, 0)] - (float)r->labels[i];

	if (t->channels == 1)
		return off > -0.5f && off < 0.5f;
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
		for (int c = 0; c < t->blocks * t->panel; c++) {
			int64_t at = ls_row_at(t, r.count, i, c);
			float off = c < t->channels ? op->x[0][at] - ls_label_target(t, r.labels[i], c) : 0;
			sum += off * off;
			if (r.dx)
				r.dx[at] = 2 * off * r.scale / (float)t->channels;
		}
		r.loss[i] = sum / (float)t->channels;
	}
}

const ls_op_type ls_op_mean_squared_error = {
	.name = "mean_squared_error",
	.formula = "loss = mean over c of (x[c] - t[c])^2, t = onehot(label); one channel: t = label",
	.inputs = "x",
	.attributes = "",
	.input_count = 1,
	.is_loss = 1,
	.lone_labels = INT_MAX,
	.shape = ls_check_loss_rows,
	.forward = forward,
	.cases = { { .channels = 7, .height = 1, .width = 1 },
		   { .channels = 1, .height = 1, .width = 1 },
		   { .domain = LS_MASKED, .channels = 37, .height = 7, .width = 1 } },
};
