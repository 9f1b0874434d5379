/*
 * slice.c - some channels of a value, one behind the other.
 *
 *   y[c] = x[first + c];  dx[first + c] = dy[c], 0 in all other channels        x (rows, C), y (rows, channels)
 */
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	const ls_slice_options *o = s->attributes;
	int channels = s->in[0]->channels;

	if (o->first < 0 || o->channels < 1 || o->first > channels - o->channels)
		return ls_fail(LS_EINVALID, "slice: %d channels from channel %d on, of a value that has %d",
			       o->channels, o->first, channels);
	s->out = ls_tensor_like(s->in[0], o->channels);
	return LS_OK;
}

static int first_of(const ls_op *op)
{
	return ((const ls_slice_options *)op->node->attributes)->first;
}

/* Channels from c on that lie together both in a (from `first` on) and in b. */
static int run_of(const ls_tensor *a, int first, const ls_tensor *b, int c, int end)
{
	int of_a = a->panel - (first + c) % a->panel, of_b = b->panel - c % b->panel;
	int run = of_a < of_b ? of_a : of_b;
	return run < end - c ? run : end - c;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in[0], *out = op->out;
	int64_t rows = ls_pass_rows(pass, out), begin, end;
	int first = first_of(op);

	ls_team_range(member, rows, &begin, &end);
	for (int c = 0, run; c < out->channels; c += run) {
		run = run_of(in, first, out, c, out->channels);
		for (int64_t r = begin; r < end; r++) {
			const float *x = &op->x[0][ls_row_at(in, rows, r, first + c)];
			float *y = &op->y[ls_row_at(out, rows, r, c)];
			for (int i = 0; i < run; i++)
				y[i] = x[i];
		}
	}
	for (int c = out->channels; c < out->blocks * out->panel; c++)
		for (int64_t r = begin; r < end; r++)
			op->y[ls_row_at(out, rows, r, c)] = 0;
}

/* Channels [from, to) of dx. */
static void clear(const ls_op *op, int64_t rows, int64_t begin, int64_t end, int from, int to)
{
	const ls_tensor *in = op->in[0];
	for (int c = from; c < to; c++)
		for (int64_t r = begin; r < end; r++)
			op->dx[0][ls_row_at(in, rows, r, c)] = 0;
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in[0], *out = op->out;
	int64_t rows = ls_pass_rows(pass, out), begin, end;
	int first = first_of(op);

	ls_team_range(member, rows, &begin, &end);
	if (!op->add_dx[0]) {
		clear(op, rows, begin, end, 0, first);
		clear(op, rows, begin, end, first + out->channels, in->blocks * in->panel);
	}
	for (int c = 0, run; c < out->channels; c += run) {
		run = run_of(in, first, out, c, out->channels);
		for (int64_t r = begin; r < end; r++) {
			const float *dy = &op->dy[ls_row_at(out, rows, r, c)];
			float *dx = &op->dx[0][ls_row_at(in, rows, r, first + c)];
			for (int i = 0; i < run; i++)
				dx[i] = op->add_dx[0] ? dx[i] + dy[i] : dy[i];
		}
	}
}

const ls_op_type ls_op_slice = {
	.name = "slice",
	.formula = "y = `channels` channels of x from channel `first` on",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_slice_options, "first, channels"),
	.adds = 1,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(48, 7, .attributes = &(ls_slice_options){ .first = 16, .channels = 16 }),
		   LS_CASE_IMAGES(70, 4, 3, .attributes = &(ls_slice_options){ .first = 3, .channels = 66 }),
		   LS_CASE_TOKENS(20, 7, .attributes = &(ls_slice_options){ .first = 13, .channels = 7 }) },
};
