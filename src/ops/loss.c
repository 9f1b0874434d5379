/*
 * loss.c - what losses share that are a mean over channels, each compared with the label by itself.
 */
#include "ops/op.h"

static int is_right(const ls_op *op, const ls_loss_rows *r, int64_t i, const ls_channel_loss *loss)
{
	const ls_tensor *t = op->in[0];
	if (t->channels == 1)
		return loss->lone_is_right(op->x[0][ls_row_at(t, r->count, i, 0)], r->labels[i]);
	return ls_row_maximum(t, op->x[0], r->count, i) == r->labels[i];
}

void ls_channel_loss_forward(const ls_op *op, const ls_pass *pass, ls_member member, const ls_channel_loss *loss)
{
	const ls_tensor *t = op->in[0];
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	int64_t begin, end;

	ls_team_range(member, r.count, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		r.correct[i] = (uint8_t)is_right(op, &r, i, loss); /* before dx, which may lie where x does */
		r.loss[i] = loss->row(op, &r, i) / (float)t->channels;
		r.correct[i] &= r.loss[i] == r.loss[i];
		for (int c = t->channels; r.dx && c < t->blocks * t->panel; c++)
			r.dx[ls_row_at(t, r.count, i, c)] = 0;
	}
}
