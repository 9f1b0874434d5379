/*
 * op_layer_norm.c - each row by its own mean and deviation; before it, fused, the dropout and the sum of a residual
 * branch.
 *
 *   s = drop(x) + second;  y = (s - mean) / deviation * scale + shift
 *
 * aux: s where there is a second, then mean and 1/deviation a row. scratch: partial sums of the gradients of scale and
 * shift, a pair for each chunk of rows, combined in order.
 */
#include <string.h>

#include "graph/op.h"

enum { ROWS = 64 }; /* of a chunk: a few hundred kB at most, so what is made stays in cache for what follows */

static int64_t chunks_of(int64_t rows)
{
	return (rows + ROWS - 1) / ROWS;
}

static int keeps(const ls_node *node)
{
	return node->second == LS_NONE ? LS_KEEP_INPUT : 0;
}

static int64_t width_of(const ls_op *op)
{
	return (int64_t)op->in->blocks * op->in->panel;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	size_t rows = (size_t)ls_tensor_rows(op->in, n);
	size_t sum = op->node->second == LS_NONE ? 0 : rows * (size_t)width_of(op);
	return sizeof(float) * (sum + 2 * rows);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)(2 * width_of(op) * chunks_of(ls_tensor_rows(op->in, n)));
}

/* The parts of aux in a pass of `rows` rows. */
typedef struct kept {
	float *s, *mean, *inverse;
} kept;

static kept kept_of(const ls_op *op, int64_t rows)
{
	float *aux = op->aux;
	int64_t sum = op->node->second == LS_NONE ? 0 : rows * width_of(op);
	return (kept){ .s = sum ? aux : NULL, .mean = aux + sum, .inverse = aux + sum + rows };
}

static ls_row_shape shape_of(const ls_op *op, int64_t rows)
{
	return (ls_row_shape){ .rows = rows, .panel = op->in->panel, .channels = op->in->channels };
}

static int drops(const ls_op *op, const ls_pass *pass)
{
	return op->node->probability > 0 && pass->training;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->in), unit;
	ls_row_shape shape = shape_of(op, rows);
	kept k = kept_of(op, rows);
	const float *gamma = ls_op_param(op, pass, op->node->weight), *beta = ls_op_param(op, pass, op->node->bias);

	while ((unit = ls_team_next(member, chunks_of(rows))) >= 0) {
		int64_t begin = unit * ROWS, end = begin + ROWS < rows ? begin + ROWS : rows;
		const float *x = op->x;
		if (drops(op, pass)) {
			ls_drop_rows(op, pass, op->x, k.s, begin, end);
			x = k.s;
		}
		ls_simd_get()->layer_norm(&shape, x, op->second, begin, end, gamma, beta, op->node->epsilon, k.s, op->y,
					  k.mean, k.inverse);
	}
}

/* Rows [begin, end) of every block: to = from, or to += from. */
static void give_rows(const ls_op *op, int64_t rows, float *to, int add, const float *from, int64_t begin, int64_t end)
{
	int64_t panel = op->in->panel;
	if (!to || to == from)
		return;
	for (int64_t b = 0; b < op->in->blocks; b++) {
		int64_t at = (b * rows + begin) * panel, count = (end - begin) * panel;
		if (add)
			ls_simd_get()->accumulate(to + at, from + at, count);
		else
			memcpy(to + at, from + at, sizeof(float) * (size_t)count);
	}
}

static void backward_chunk(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	int64_t rows = ls_pass_rows(pass, op->in), width = width_of(op), begin = unit * ROWS;
	int64_t end = begin + ROWS < rows ? begin + ROWS : rows;
	ls_row_shape shape = shape_of(op, rows);
	kept k = kept_of(op, rows);
	float *partial = (float *)op->scratch + 2 * width * unit;

	ls_simd_get()->layer_norm_backward(&shape, op->dy, k.s ? k.s : op->x, begin, end,
					   ls_op_param(op, pass, op->node->weight), k.mean, k.inverse, op->dy, partial,
					   partial + width);
	give_rows(op, rows, op->dsecond, op->add_dsecond, op->dy, begin, end);
	if (op->dx && drops(op, pass))
		ls_drop_rows(op, pass, op->dy, op->dx, begin, end);
	else
		give_rows(op, rows, op->dx, 0, op->dy, begin, end);
}

static void combine(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t width = width_of(op), chunks = chunks_of(ls_pass_rows(pass, op->in)), begin, end;
	float *grads[2] = { ls_op_grad(op, pass, op->node->weight), ls_op_grad(op, pass, op->node->bias) };

	ls_team_range(member, width, &begin, &end);
	for (int part = 0; part < 2; part++)
		for (int64_t c = begin; c < end; c++) {
			const float *partial = (const float *)op->scratch + part * width + c;
			float sum = pass->accumulate ? grads[part][c] : 0;
			for (int64_t i = 0; i < chunks; i++)
				sum += partial[2 * width * i];
			grads[part][c] = sum;
		}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = chunks_of(ls_pass_rows(pass, op->in)), unit;

	while ((unit = ls_team_next(member, chunks)) >= 0)
		backward_chunk(op, pass, unit);
	ls_team_barrier(member);
	combine(op, pass, member);
}

const ls_op_kind ls_op_layer_norm = {
	.keeps = keeps, .aux_bytes = aux_bytes, .scratch_bytes = scratch_bytes, .forward = forward, .backward = backward
};
