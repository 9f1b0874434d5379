/*
 * mean_token.c - the mean of each sample's rows: its tokens, or the positions of an image.
 *
 *   y = sum over the sample's rows of x / their number        x (rows, C), y (samples, C)
 *   dx = dy / their number, in each of them
 */
#include <string.h>

#include "kernels/simd.h"
#include "ops/shape.h"

static void sum_rows(const float *x, ls_sample_rows of, int64_t panel, float *y)
{
	if (of.stride == 1) {
		ls_simd_get()->column_sums(x, of.count, (int)panel, y);
		return;
	}
	memcpy(y, x, sizeof(float) * (size_t)panel);
	for (int64_t r = 1; r < of.count; r++)
		ls_simd_get()->accumulate(y, x + r * of.stride * panel, panel);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->in[0]), panel = op->out->panel, begin, end;

	ls_team_range(member, op->out->blocks * pass->n, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t b = unit / pass->n, i = unit % pass->n;
		ls_sample_rows of = ls_pass_sample(pass, op->in[0], i);
		float *y = op->y + (b * pass->n + i) * panel;
		sum_rows(op->x[0] + (b * rows + of.first) * panel, of, panel, y);
		for (int64_t c = 0; c < panel; c++)
			y[c] /= (float)of.count;
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->in[0]), panel = op->out->panel, begin, end;

	if (!op->dx[0])
		return;
	ls_team_range(member, op->out->blocks * pass->n, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t b = unit / pass->n, i = unit % pass->n;
		ls_sample_rows of = ls_pass_sample(pass, op->in[0], i);
		const float *dy = op->dy + (b * pass->n + i) * panel;
		float *dx = op->dx[0] + (b * rows + of.first) * panel;
		for (int64_t r = 0; r < of.count; r++, dx += of.stride * panel)
			for (int64_t c = 0; c < panel; c++)
				dx[c] = dy[c] / (float)of.count;
	}
}

const ls_op_type ls_op_mean_token = {
	.name = "mean_token",
	.formula = "y = mean over the rows of a sample of x",
	LS_INPUTS(1, "x"),
	.shape = ls_shape_one_row,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7), LS_CASE_IMAGES(20, 3, 4) },
};
