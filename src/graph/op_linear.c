/*
 * op_linear.c - linear layers over rows, with a relu or a gelu behind them.
 *
 *   y = x . w^T + b (then relu or gelu);  dx = dy . w;  dw = dy^T . x;  db = sum of dy over rows
 *
 * aux: what the gelu is taken of, which backward needs. scratch: a block of weights a thread, then bias partials.
 */
#include "graph/op.h"

static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->relu ? LS_KEEP_OUTPUT : 0);
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return op->node->gelu ? sizeof(float) * (size_t)(ls_tensor_floats(op->out) * n) : 0;
}

static size_t turned_floats(const ls_op *op)
{
	return ls_linear_scratch_floats(op->in->panel, op->out->panel, op->threads);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	size_t bias = op->node->bias == LS_NONE ? 0 : ls_bias_grad_floats(op->out, ls_tensor_rows(op->out, n));
	return sizeof(float) * (turned_floats(op) + bias);
}

static ls_status prepare(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads)
{
	(void)sizes, (void)count, (void)threads;
	op->linear = ls_arena_alloc(arena, sizeof(*op->linear));
	if (!op->linear)
		return LS_EMEMORY;
	return ls_linear_plan_make(op->linear, op->in->channels, op->in->panel, op->out->channels, op->out->panel,
				   op->node->tied != LS_NONE);
}

static int weight_row(const ls_node *node)
{
	return node->tied != LS_NONE ? node->tied : node->weight;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_node *node = op->node;
	ls_linear_epilogue epilogue = { .bias = ls_op_param(op, pass, node->bias),
					.relu = node->relu,
					.before = node->gelu ? op->aux : NULL,
					.approximate = node->gelu == 2 };

	ls_linear_forward(op->linear, ls_pass_rows(pass, op->out), op->x, ls_op_param(op, pass, weight_row(node)),
			  &epilogue, op->y, op->scratch, member);
}

/* dy back through what rode along. */
static void mask_dy(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t count = ls_pass_floats(pass, op->out) / 16, begin, end;
	const ls_simd *simd = ls_simd_get();

	if (!op->node->relu && !op->node->gelu)
		return;
	ls_team_range(member, count, &begin, &end);
	float *dy = op->dy + begin * 16;
	if (op->node->relu)
		simd->relu_backward(dy, op->y + begin * 16, (end - begin) * 16, dy);
	else
		simd->gelu_backward(dy, (const float *)op->aux + begin * 16, (end - begin) * 16, op->node->gelu == 2,
				    dy);
	ls_team_barrier(member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_node *node = op->node;
	int64_t rows = ls_pass_rows(pass, op->out);
	float *turned = op->scratch, *partial = turned + turned_floats(op);

	mask_dy(op, pass, member);
	if (node->bias != LS_NONE) {
		ls_bias_grad_partials(op->out, rows, op->dy, partial, member);
		ls_team_barrier(member);
		ls_bias_grad_combine(op->out, rows, partial, pass->accumulate, ls_op_grad(op, pass, node->bias),
				     member);
	}
	ls_linear_backward_weights(op->linear, rows, op->x, op->dy, pass->accumulate || node->adds_tied,
				   ls_op_grad(op, pass, weight_row(node)), member);
	if (op->dx) {
		ls_team_barrier(member);
		ls_linear_backward_data(op->linear, rows, op->dy, ls_op_param(op, pass, weight_row(node)), op->add_dx,
					op->dx, turned, member);
	}
}

const ls_op_kind ls_op_linear = { .keeps = keeps,
				  .aux_bytes = aux_bytes,
				  .scratch_bytes = scratch_bytes,
				  .prepare = prepare,
				  .forward = forward,
				  .backward = backward,
				  .adds_input = 1 };
