/*
 * layer_norm.c - each row by its own mean and deviation; before it, fused, the dropout and the sum of a residual
 * branch.
 *
 *   s = dropout(x) + residual;  n = (s - mean) / sqrt(variance + eps), both of the row;  y = n weight + bias
 *   dweight = sum over rows of dy n;  dbias = sum over rows of dy;  g = dy weight
 *   dresidual = ds = (g - mean of g - n (mean of g n)) / sqrt(variance + eps);  dx = dropout(ds)
 *
 * x, residual, y (rows, C); weight, bias (C). aux: s where there is a residual, then mean and 1 / sqrt(variance + eps)
 * per row. scratch: partial sums of dweight and dbias, a pair for each chunk of rows, combined in order.
 */
#include <string.h>

#include "kernels/simd.h"
#include "ops/shape.h"

enum { ROWS = 64 }; /* of a chunk: a few hundred kB at most, so what is made stays in cache for what follows */

static int64_t chunks_of(int64_t rows)
{
	return (rows + ROWS - 1) / ROWS;
}

static ls_status shape(ls_shape *s)
{
	ls_layer_norm_options *o = s->attributes;
	int channels = s->in[0]->channels;

	o->eps = o->eps > 0 ? o->eps : 1e-5f;
	LS_TRY(ls_shape_param(s, LS_WEIGHT, s->name, "weight",
			      ls_vector_param(channels, LS_ROLE_NORM, LS_INIT_ONE, 1)));
	LS_TRY(ls_shape_param(s, LS_BIAS, s->name, "bias", ls_vector_param(channels, LS_ROLE_NORM, LS_INIT_ZERO, 1)));
	return ls_shape_same(s);
}

static int keeps(const ls_node *node)
{
	return node->input_count == 1 ? LS_KEEP_INPUT : 0;
}

static int has_residual(const ls_op *op)
{
	return op->node->input_count == 2;
}

static int64_t width_of(const ls_op *op)
{
	return (int64_t)op->in[0]->blocks * op->in[0]->panel;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	size_t rows = (size_t)ls_tensor_rows(op->in[0], n);
	size_t sum = !has_residual(op) ? 0 : rows * (size_t)width_of(op);
	return sizeof(float) * (sum + 2 * rows);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)(2 * width_of(op) * chunks_of(ls_tensor_rows(op->in[0], n)));
}

/* The parts of aux in a pass of `rows` rows. */
typedef struct kept {
	float *s, *mean, *inverse;
} kept;

static kept kept_of(const ls_op *op, int64_t rows)
{
	float *aux = op->aux;
	int64_t sum = !has_residual(op) ? 0 : rows * width_of(op);
	return (kept){ .s = sum ? aux : NULL, .mean = aux + sum, .inverse = aux + sum + rows };
}

static ls_row_shape row_shape_of(const ls_op *op, int64_t rows)
{
	return (ls_row_shape){ .rows = rows, .panel = op->in[0]->panel, .channels = op->in[0]->channels };
}

static int drops(const ls_op *op, const ls_pass *pass)
{
	return op->node->dropout > 0 && pass->training;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->in[0]), unit;
	ls_row_shape row_shape = row_shape_of(op, rows);
	kept k = kept_of(op, rows);
	const float *gamma = ls_op_param(op, pass, LS_WEIGHT), *beta = ls_op_param(op, pass, LS_BIAS);
	float eps = ((const ls_layer_norm_options *)op->node->attributes)->eps;

	while ((unit = ls_team_next(member, chunks_of(rows))) >= 0) {
		int64_t begin = unit * ROWS, end = begin + ROWS < rows ? begin + ROWS : rows;
		const float *x = op->x[0];
		if (drops(op, pass)) {
			ls_drop_rows(op, pass, op->node->dropout, op->x[0], k.s, begin, end);
			x = k.s;
		}
		ls_simd_get()->layer_norm(&row_shape, x, op->x[1], begin, end, gamma, beta, eps, k.s, op->y, k.mean,
					  k.inverse);
	}
}

/* Rows [begin, end) of every block: to = from, or to += from. */
static void give_rows(const ls_op *op, int64_t rows, float *to, int add, const float *from, int64_t begin, int64_t end)
{
	int64_t panel = op->in[0]->panel;
	if (!to || to == from)
		return;
	for (int64_t b = 0; b < op->in[0]->blocks; b++) {
		int64_t at = (b * rows + begin) * panel, count = (end - begin) * panel;
		if (add)
			ls_simd_get()->accumulate(to + at, from + at, count);
		else
			memcpy(to + at, from + at, sizeof(float) * (size_t)count);
	}
}

static void backward_chunk(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	int64_t rows = ls_pass_rows(pass, op->in[0]), width = width_of(op), begin = unit * ROWS;
	int64_t end = begin + ROWS < rows ? begin + ROWS : rows;
	ls_row_shape row_shape = row_shape_of(op, rows);
	kept k = kept_of(op, rows);
	float *partial = (float *)op->scratch + 2 * width * unit;

	ls_simd_get()->layer_norm_backward(&row_shape, op->dy, k.s ? k.s : op->x[0], begin, end,
					   ls_op_param(op, pass, LS_WEIGHT), k.mean, k.inverse, op->dy, partial,
					   partial + width);
	give_rows(op, rows, op->dx[1], op->add_dx[1], op->dy, begin, end);
	if (op->dx[0] && drops(op, pass))
		ls_drop_rows(op, pass, op->node->dropout, op->dy, op->dx[0], begin, end);
	else
		give_rows(op, rows, op->dx[0], 0, op->dy, begin, end);
}

static void combine(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t width = width_of(op), chunks = chunks_of(ls_pass_rows(pass, op->in[0])), begin, end;
	float *grads[2] = { ls_op_grad(op, pass, LS_WEIGHT), ls_op_grad(op, pass, LS_BIAS) };

	ls_team_range(member, width, &begin, &end);
	for (int part = 0; part < 2; part++)
		for (int64_t c = begin; grads[part] && c < end; c++) {
			const float *partial = (const float *)op->scratch + part * width + c;
			float sum = pass->accumulate ? grads[part][c] : 0;
			for (int64_t i = 0; i < chunks; i++)
				sum += partial[2 * width * i];
			grads[part][c] = sum;
		}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = chunks_of(ls_pass_rows(pass, op->in[0])), unit;

	while ((unit = ls_team_next(member, chunks)) >= 0)
		backward_chunk(op, pass, unit);
	ls_team_barrier(member);
	combine(op, pass, member);
}

const ls_op_type ls_op_layer_norm = {
	.name = "layer_norm",
	.formula = "y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance of each row",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_layer_norm_options, "eps"),
	.named = 1,
	.fuses = LS_FUSES_SUM_BEFORE,
	.adds = 2,
	.shape = shape,
	.keeps = keeps,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7, .attributes = &(ls_layer_norm_options){ 0 }),
		   LS_CASE_IMAGES(70, 4, 3, .attributes = &(ls_layer_norm_options){ .eps = 1e-3f }) },
};
