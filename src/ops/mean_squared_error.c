/*
 * mean_squared_error.c - the loss of regression.
 *
 *   loss = mean over channels of (x[c] - t[c])^2;  dx[c] = 2 (x[c] - t[c]) / C        x, t (rows, C)
 *
 * t is the row's float targets. Of a label it is 1 in the label's channel and 0 elsewhere; with one channel the label,
 * a number. A row is right when its greatest channel is that of t, with one channel when x is within 0.5 of t.
 */
#include <limits.h>

#include "ops/shape.h"

static int is_right(float x, float target)
{
	float off = x - target;
	return off > -0.5f && off < 0.5f;
}

static float row(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	const ls_tensor *t = op->in[0];
	float sum = 0;

	for (int c = 0; c < t->channels; c++) {
		int64_t at = ls_row_at(t, r->count, i, c);
		float off = op->x[0][at] - ls_loss_target(t, r, i, c);
		sum += off * off;
		if (r->dx)
			r->dx[at] = 2 * off * r->scale / (float)t->channels;
	}
	return sum;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_channel_loss_forward(op, pass, member, &(ls_channel_loss){ is_right, row, 0 });
}

const ls_op_type ls_op_mean_squared_error = {
	.name = "mean_squared_error",
	.formula = "loss = mean over c of (x[c] - t[c])^2, t = targets, or onehot(label); one channel: t = label",
	LS_INPUTS(1, "x"),
	.is_loss = 1,
	.lone_labels = INT_MAX,
	.shape = ls_check_loss_rows,
	.forward = forward,
	.cases = { LS_CASE_IMAGES(7, 1, 1),
		   LS_CASE_IMAGES(1, 1, 1),
		   LS_CASE_IMAGES(7, 1, 1, .targets = 1),
		   { .domain = LS_MASKED, .channels = 37, .height = 7, .width = 1 } },
};
