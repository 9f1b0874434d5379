/*
 * loss.c - what losses share that are a mean over channels, each compared with its target by itself.
 */
#include "ops/op.h"

int ls_loss_class(const ls_tensor *t, const ls_loss_rows *r, int64_t i)
{
	int best = 0;

	if (!r->targets)
		return r->labels[i];
	const float *row = r->targets + i * t->channels;
	for (int c = 1; c < t->channels; c++)
		best = row[c] > row[best] ? c : best;
	return best;
}

static int is_right(const ls_op *op, const ls_loss_rows *r, int64_t i, const ls_channel_loss *loss)
{
	const ls_tensor *t = op->in[0];
	int right = 1;

	if (t->channels > 1 && !(r->targets && loss->each))
		return ls_row_maximum(t, op->x[0], r->count, i) == ls_loss_class(t, r, i);
	for (int c = 0; c < t->channels; c++)
		right &= loss->is_right(op->x[0][ls_row_at(t, r->count, i, c)], ls_loss_target(t, r, i, c));
	return right;
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
