/*
 * op_pool.c - max and average pooling; a max pool may carry the bias and relu of the convolution before it.
 *
 *   y = relu?(max over the window of x + b);  the gradient goes to the first maximum
 *   y = sum over the window / (kernel_h kernel_w)
 *
 * aux: a byte an output, which element of the window won. scratch: bias partials.
 */
#include "graph/op.h"

static int max_keeps(const ls_node *node)
{
	return node->relu ? LS_KEEP_OUTPUT : 0;
}

static int avg_keeps(const ls_node *node)
{
	(void)node;
	return 0;
}

static size_t max_aux_bytes(const ls_op *op, int64_t n)
{
	return (size_t)(ls_tensor_floats(op->out) * n);
}

static size_t max_scratch_bytes(const ls_op *op, int64_t n)
{
	return op->node->bias == LS_NONE ? 0 : sizeof(float) * ls_bias_grad_floats(op->out, ls_tensor_rows(op->out, n));
}

static ls_pool_geometry geometry(const ls_op *op, int64_t n)
{
	ls_pool_geometry g = op->node->pool;
	g.n = n;
	g.panel = op->in->panel;
	return g;
}

static void max_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_simd *simd = ls_simd_get();
	ls_pool_geometry g = geometry(op, pass->n);
	const float *bias = ls_op_param(op, pass, op->node->bias);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel, row = (int64_t)g.out_w * g.n * g.panel, unit;

	while ((unit = ls_team_next(member, (int64_t)op->in->blocks * g.out_h)) >= 0) {
		int64_t block = unit / g.out_h;
		int oy = (int)(unit % g.out_h);
		float *y = op->y + block * g.out_h * row;
		simd->max_pool(&g, op->x + block * in_plane, oy, y, (uint8_t *)op->aux + block * g.out_h * row);
		if (bias || op->node->relu)
			simd->bias_act(y + oy * row, g.out_w * g.n, g.panel, bias ? bias + block * g.panel : NULL,
				       op->node->relu);
	}
}

/* What the fused bias and relu owe, on the pooled gradient. */
static void max_backward_epilogue(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t count = ls_tensor_floats(op->out) * pass->n / 16, begin, end;

	if (op->node->relu) {
		ls_team_range(member, count, &begin, &end);
		ls_simd_get()->relu_backward(op->dy + begin * 16, op->y + begin * 16, (end - begin) * 16,
					     op->dy + begin * 16);
		ls_team_barrier(member);
	}
	if (op->node->bias != LS_NONE) {
		int64_t rows = ls_tensor_rows(op->out, pass->n);
		ls_bias_grad_partials(op->out, rows, op->dy, op->scratch, member);
		ls_team_barrier(member);
		ls_bias_grad_combine(op->out, rows, op->scratch, pass->accumulate, ls_op_grad(op, pass, op->node->bias),
				     member);
	}
}

static void max_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = geometry(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	max_backward_epilogue(op, pass, member);
	if (!op->dx)
		return;
	while ((unit = ls_team_next(member, (int64_t)op->in->blocks * g.in_h)) >= 0) {
		int64_t block = unit / g.in_h;
		ls_simd_get()->max_pool_backward(&g, op->dy + block * out_plane, (uint8_t *)op->aux + block * out_plane,
						 (int)(unit % g.in_h), op->add_dx, op->dx + block * in_plane);
	}
}

static void avg_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = geometry(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	while ((unit = ls_team_next(member, (int64_t)op->in->blocks * g.out_h)) >= 0) {
		int64_t block = unit / g.out_h;
		ls_simd_get()->avg_pool(&g, op->x + block * in_plane, (int)(unit % g.out_h), op->y + block * out_plane);
	}
}

static void avg_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_pool_geometry g = geometry(op, pass->n);
	int64_t in_plane = (int64_t)g.in_h * g.in_w * g.n * g.panel,
		out_plane = (int64_t)g.out_h * g.out_w * g.n * g.panel;
	int64_t unit;

	while (op->dx && (unit = ls_team_next(member, (int64_t)op->in->blocks * g.in_h)) >= 0) {
		int64_t block = unit / g.in_h;
		ls_simd_get()->avg_pool_backward(&g, op->dy + block * out_plane, (int)(unit % g.in_h), op->add_dx,
						 op->dx + block * in_plane);
	}
}

const ls_op_kind ls_op_max_pool = { .keeps = max_keeps,
				    .aux_bytes = max_aux_bytes,
				    .scratch_bytes = max_scratch_bytes,
				    .forward = max_forward,
				    .backward = max_backward,
				    .adds_input = 1 };
const ls_op_kind ls_op_avg_pool = {
	.keeps = avg_keeps, .forward = avg_forward, .backward = avg_backward, .adds_input = 1
};
