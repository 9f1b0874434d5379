/*
 * op_rows.c - rows one by one: gelu, tanh, and which rows go on.
 *
 *   gelu    y = x * normal distribution(x), or its tanh form
 *   tanh
 *   first   the row of each sample's first token
 *   mean    the mean of each sample's rows
 *   pick    the rows of the tokens to be predicted
 */
#include <string.h>

#include "graph/op.h"

enum { LINE = 16 };

static int keeps_input(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT;
}

static int keeps_output(const ls_node *node)
{
	(void)node;
	return LS_KEEP_OUTPUT;
}

static int keeps_nothing(const ls_node *node)
{
	(void)node;
	return 0;
}

static void share(const ls_op *op, const ls_pass *pass, ls_member member, int64_t *begin, int64_t *count)
{
	int64_t end;
	ls_team_range(member, ls_pass_floats(pass, op->out) / LINE, begin, &end);
	*count = (end - *begin) * LINE;
	*begin *= LINE;
}

static void gelu_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op, pass, member, &begin, &count);
	ls_simd_get()->gelu(op->x + begin, count, op->node->gelu == 2, op->y + begin);
}

static void gelu_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op, pass, member, &begin, &count);
	if (op->dx)
		ls_simd_get()->gelu_backward(op->dy + begin, op->x + begin, count, op->node->gelu == 2, op->dx + begin);
}

const ls_op_kind ls_op_gelu = { .keeps = keeps_input, .forward = gelu_forward, .backward = gelu_backward };

static void tanh_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op, pass, member, &begin, &count);
	ls_simd_get()->tanh(op->x + begin, count, op->y + begin);
}

static void tanh_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op, pass, member, &begin, &count);
	if (op->dx)
		ls_simd_get()->tanh_backward(op->dy + begin, op->y + begin, count, op->dx + begin);
}

const ls_op_kind ls_op_tanh = { .keeps = keeps_output, .forward = tanh_forward, .backward = tanh_backward };

/* ---- which rows -------------------------------------------------------------------------------------------------- */

static float *row_at(float *x, int64_t rows, int64_t panel, int64_t block, int64_t row)
{
	return x + (block * rows + row) * panel;
}

/* Row from[i] of x becomes row i of y. */
static void gather_forward(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in), out = ls_pass_rows(pass, op->out), panel = op->in->panel, begin, end;

	ls_team_range(member, out, &begin, &end);
	for (int64_t b = 0; b < op->in->blocks; b++)
		for (int64_t i = begin; i < end; i++)
			memcpy(row_at(op->y, out, panel, b, i), row_at((float *)op->x, in, panel, b, from[i]),
			       sizeof(float) * (size_t)panel);
}

/* dx is zero but for the rows that were taken; each of them once. Adds to what is there when it must. */
static void gather_backward(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in), out = ls_pass_rows(pass, op->out), panel = op->in->panel, begin, end;

	if (!op->dx)
		return;
	ls_team_range(member, op->in->blocks, &begin, &end);
	for (int64_t b = begin; b < end; b++) {
		if (!op->add_dx)
			memset(row_at(op->dx, in, panel, b, 0), 0, sizeof(float) * (size_t)(in * panel));
		for (int64_t i = 0; i < out; i++)
			ls_simd_get()->accumulate(row_at(op->dx, in, panel, b, from[i]),
						  row_at(op->dy, out, panel, b, i), panel);
	}
}

static void first_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	gather_forward(op, pass, pass->start, member);
}

static void first_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	gather_backward(op, pass, pass->start, member);
}

const ls_op_kind ls_op_first = {
	.keeps = keeps_nothing, .forward = first_forward, .backward = first_backward, .adds_input = 1
};

static void masked_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	gather_forward(op, pass, pass->masked_at, member);
}

static void masked_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	gather_backward(op, pass, pass->masked_at, member);
}

const ls_op_kind ls_op_masked_positions = {
	.keeps = keeps_nothing, .forward = masked_forward, .backward = masked_backward, .adds_input = 1
};

/* ---- mean -------------------------------------------------------------------------------------------------------- */

static void mean_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in), panel = op->in->panel, begin, end;

	ls_team_range(member, op->in->blocks * pass->n, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t b = unit / pass->n, i = unit % pass->n, length = pass->start[i + 1] - pass->start[i];
		float *y = row_at(op->y, pass->n, panel, b, i);
		ls_simd_get()->column_sums(row_at((float *)op->x, in, panel, b, pass->start[i]), length, (int)panel, y);
		for (int64_t c = 0; c < panel; c++)
			y[c] /= (float)length;
	}
}

static void mean_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in), panel = op->in->panel, begin, end;

	if (!op->dx)
		return;
	ls_team_range(member, op->in->blocks * pass->n, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t b = unit / pass->n, i = unit % pass->n, length = pass->start[i + 1] - pass->start[i];
		const float *dy = row_at(op->dy, pass->n, panel, b, i);
		for (int64_t r = pass->start[i]; r < pass->start[i + 1]; r++)
			for (int64_t c = 0; c < panel; c++)
				row_at(op->dx, in, panel, b, r)[c] = dy[c] / (float)length;
	}
}

const ls_op_kind ls_op_mean = { .keeps = keeps_nothing, .forward = mean_forward, .backward = mean_backward };
