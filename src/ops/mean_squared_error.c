/*
 * mean_squared_error.c - the loss of regression.
 *
 *   loss = mean over channels of (x[c] - t[c])^2;  dx[c] = 2 (x[c] - t[c]) / C        x, t (rows, C)
 *
 * t is 1 in the label's channel and 0 elsewhere; with one channel it is the label, a number. A row is right when its
 * greatest channel is the label's, with one channel when x rounds to the label.
 */
#include <limits.h>

#include "ops/shape.h"

static int lone_is_right(float x, int32_t label)
{
	float off = x - (float)label;
	return off > -0.5f && off < 0.5f;
}

static float row(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	const ls_tensor *t = op->in[0];
	float sum = 0;

	for (int c = 0; c < t->channels; c++) {
		int64_t at = ls_row_at(t, r->count, i, c);
		float off = op->x[0][at] - ls_label_target(t, r->labels[i], c);
		sum += off * off;
		if (r->dx)
			r->dx[at] = 2 * off * r->scale / (float)t->channels;
	}
	return sum;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_channel_loss_forward(op, pass, member, &(ls_channel_loss){ lone_is_right, row });
}

const ls_op_type ls_op_mean_squared_error = {
	.name = "mean_squared_error",
	.formula = "loss = mean over c of (x[c] - t[c])^2, t = onehot(label); one channel: t = label",
	LS_INPUTS(1, "x"),
	.is_loss = 1,
	.lone_labels = INT_MAX,
	.shape = ls_check_loss_rows,
	.forward = forward,
	.cases = { LS_CASE_IMAGES(7, 1, 1),
		   LS_CASE_IMAGES(1, 1, 1),
		   { .domain = LS_MASKED, .channels = 37, .height = 7, .width = 1 } },
};
