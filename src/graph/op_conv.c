/*
 * op_conv.c - convolution and linear layers.
 *
 *   y[o] = sum over taps t and channels c of w[o, c, t] * x[c, position + t] (+ b[o]) (then relu)
 *   dx   = the same walk backwards;  dw[o, c, t] = sum over positions and samples of dy[o] * x[c];  db[o] = sum of
 * dy[o]
 *
 * aux: patches of a gathered layer (positions, n, patch_floats). scratch: turned weights, then bias partials.
 */
#include <string.h>

#include "graph/op.h"

static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->relu ? LS_KEEP_OUTPUT : 0);
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	const ls_conv_geometry *g = &op->node->conv;
	if (!g->gathered)
		return 0;
	return sizeof(float) * (size_t)((int64_t)g->out_h * g->out_w * n * ls_conv_patch_floats(g));
}

static size_t turned_floats(const ls_op *op)
{
	return op->node->conv.gathered ? 0 : op->graph->params.rows[op->node->weight].count;
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	size_t bias = op->node->bias == LS_NONE ? 0 : ls_bias_grad_floats(op->out, ls_tensor_rows(op->out, n));
	return sizeof(float) * (turned_floats(op) + bias);
}

static ls_status prepare(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads)
{
	op->plans = ls_arena_alloc(arena, sizeof(*op->plans) * (size_t)count);
	if (!op->plans)
		return LS_EMEMORY;
	for (int i = 0; i < count; i++)
		LS_TRY(ls_conv_plan_make(&op->plans[i], arena, &op->node->conv, sizes[i],
					 &op->graph->params.rows[op->node->weight].layout, threads));
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_node *node = op->node;
	const ls_conv_plan *plan = &op->plans[pass->size];
	ls_conv_epilogue epilogue = { .bias = ls_op_param(op, pass, node->bias), .relu = node->relu };
	const float *x = op->x;

	if (node->conv.gathered) {
		ls_conv_gather(&node->conv, pass->n, pass->images, op->aux, member);
		ls_team_barrier(member);
		x = op->aux;
	}
	if (op->norm && pass->training) {
		epilogue.mean = ls_norm_moments(op->norm);
		epilogue.m2 = epilogue.mean + plan->forward.tiles * plan->forward.blocks * plan->forward.panel;
	}
	ls_conv_forward(plan, x, ls_op_param(op, pass, node->weight), &epilogue, op->y, member);
}

static void mask_dy(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t count = ls_tensor_floats(op->out) * pass->n / 16, begin, end;
	ls_team_range(member, count, &begin, &end);
	ls_simd_get()->relu_backward(op->dy + begin * 16, op->y + begin * 16, (end - begin) * 16, op->dy + begin * 16);
	ls_team_barrier(member);
}

/* Taps that never meet the image, where they are kept live (coupled weight decay wants that): their gradient is zero.
 */
static void zero_dead(const ls_op *op, const ls_conv_plan *plan, float *dweights, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	int64_t live = (int64_t)plan->live_taps * f->blocks * f->source_blocks * f->source_panel * f->panel, begin, end;

	ls_team_range(member, (int64_t)op->graph->params.rows[op->node->weight].count - live, &begin, &end);
	memset(dweights + live + begin, 0, sizeof(float) * (size_t)(end - begin));
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_node *node = op->node;
	const ls_conv_plan *plan = &op->plans[pass->size];
	float *turned = op->scratch, *partial = turned + turned_floats(op);
	const float *x = node->conv.gathered ? op->aux : op->maker ? op->x_again : op->x;

	if (op->maker) {
		ls_norm_remake(op->maker, pass, op->x_again, member);
		ls_team_barrier(member);
	}
	if (node->relu)
		mask_dy(op, pass, member);
	if (node->bias != LS_NONE) {
		int64_t rows = ls_tensor_rows(op->out, pass->n);
		ls_bias_grad_partials(op->out, rows, op->dy, partial, member);
		ls_team_barrier(member);
		ls_bias_grad_combine(op->out, rows, partial, pass->accumulate, ls_op_grad(op, pass, node->bias),
				     member);
	}
	if (op->dx) {
		ls_conv_backward_data(plan, op->dy, ls_op_param(op, pass, node->weight), turned, op->add_dx, op->dx,
				      member);
		ls_team_barrier(member);
	}
	zero_dead(op, plan, ls_op_grad(op, pass, node->weight), member);
	ls_conv_backward_weights(plan, x, op->dy, pass->accumulate, ls_op_grad(op, pass, node->weight), member);
}

const ls_op_kind ls_op_conv = { .keeps = keeps,
				.aux_bytes = aux_bytes,
				.scratch_bytes = scratch_bytes,
				.prepare = prepare,
				.forward = forward,
				.backward = backward,
				.adds_input = 1 };
