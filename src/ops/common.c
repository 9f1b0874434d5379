/*
 * common.c - what several operators share; op.h says what each does.
 *
 *   for rows of the table    what backward reads again (`keeps`)
 *   for layers               the gradient of a bias, dy back through a fused relu
 *   for choices of rows      gather and its gradient, scatter
 *   for losses               the greatest channel of a row
 *   for all                  padding to zero, handing on a gradient
 */
#include <string.h>

#include "kernels/simd.h"
#include "ops/op.h"

int ls_keeps_input(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT;
}

int ls_keeps_output(const ls_node *node)
{
	(void)node;
	return LS_KEEP_OUTPUT;
}

int ls_keeps_activated(const ls_node *node)
{
	return node->activation ? LS_KEEP_OUTPUT : 0;
}

size_t ls_bias_grad_floats(const ls_op *op, int64_t n)
{
	const ls_tensor *t = op->out;
	return op->params[LS_BIAS] ? (size_t)(t->blocks * ls_chunks(ls_tensor_rows(t, n)) * t->panel) : 0;
}

void ls_bias_grad_chunk(const ls_op *op, const ls_pass *pass, int64_t block, int64_t chunk, float *partial)
{
	const ls_tensor *t = op->out;
	const int64_t rows = ls_pass_rows(pass, t);
	ls_simd_get()->column_sums(op->dy + (block * rows + chunk * LS_CHUNK_ROWS) * t->panel,
				   ls_chunk_rows(rows, chunk), t->panel,
				   partial + (block * ls_chunks(rows) + chunk) * t->panel);
}

void ls_bias_grad_combine(const ls_op *op, const ls_pass *pass, const float *partial, ls_member member)
{
	const ls_tensor *t = op->out;
	int64_t chunks = ls_chunks(ls_pass_rows(pass, t)), begin, end;
	float *dbias = ls_op_grad(op, pass, LS_BIAS);

	ls_team_range(member, (int64_t)t->blocks * t->panel, &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		const float *column = partial + c / t->panel * chunks * t->panel + c % t->panel;
		float sum = pass->accumulate ? dbias[c] : 0;
		for (int64_t chunk = 0; chunk < chunks; chunk++)
			sum += column[chunk * t->panel];
		dbias[c] = sum;
	}
}

void ls_bias_grad(const ls_op *op, const ls_pass *pass, float *partial, ls_member member)
{
	int64_t chunks = ls_chunks(ls_pass_rows(pass, op->out)), begin, end;

	ls_team_range(member, op->out->blocks * chunks, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++)
		ls_bias_grad_chunk(op, pass, unit / chunks, unit % chunks, partial);
	ls_team_barrier(member);
	ls_bias_grad_combine(op, pass, partial, member);
}

void ls_mask_dy(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_simd_get()->relu_backward(op->dy + begin, op->y + begin, count, op->dy + begin);
	ls_team_barrier(member);
}

/* Where row r of a channel block begins, in floats, in a value of `rows` rows. */
static int64_t row_start(int64_t rows, int64_t panel, int64_t block, int64_t r)
{
	return (block * rows + r) * panel;
}

void ls_gather_rows(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in[0]), out = ls_pass_rows(pass, op->out), panel = op->out->panel;
	int64_t begin, end;

	ls_team_range(member, out, &begin, &end);
	for (int64_t b = 0; b < op->out->blocks; b++)
		for (int64_t i = begin; i < end; i++)
			memcpy(op->y + row_start(out, panel, b, i),
			       op->x[0] + row_start(in, panel, b, from ? from[i] : i), sizeof(float) * (size_t)panel);
}

void ls_scatter_rows(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member)
{
	int64_t in = ls_pass_rows(pass, op->in[0]), out = ls_pass_rows(pass, op->out), panel = op->out->panel;
	int64_t begin, end;

	if (!op->dx[0])
		return;
	ls_team_range(member, op->out->blocks, &begin, &end);
	for (int64_t b = begin; b < end; b++) {
		if (!op->add_dx[0])
			memset(op->dx[0] + row_start(in, panel, b, 0), 0, sizeof(float) * (size_t)(in * panel));
		for (int64_t i = 0; i < out; i++)
			ls_simd_get()->accumulate(op->dx[0] + row_start(in, panel, b, from ? from[i] : i),
						  op->dy + row_start(out, panel, b, i), panel);
	}
}

void ls_zero_padding(const ls_tensor *t, int64_t rows, float *y, int64_t begin, int64_t count)
{
	int64_t last = (t->blocks - 1) * rows * t->panel; /* where the last block begins: only it has padding */
	int64_t real = t->channels - (t->blocks - 1) * t->panel;

	if (real == t->panel)
		return;
	for (int64_t i = begin > last ? begin : last; i < begin + count; i++)
		if (i % t->panel >= real)
			y[i] = 0;
}

int ls_row_maximum(const ls_tensor *t, const float *x, int64_t rows, int64_t i)
{
	int best = 0;
	for (int c = 1; c < t->channels; c++)
		if (x[ls_row_at(t, rows, i, c)] > x[ls_row_at(t, rows, i, best)])
			best = c;
	return best;
}

void ls_give(float *to, int add, const float *g, int64_t count)
{
	if (!to)
		return;
	if (add)
		ls_simd_get()->accumulate(to, g, count);
	else
		memmove(to, g, sizeof(float) * (size_t)count);
}
