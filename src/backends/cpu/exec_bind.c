/*
 * exec_bind.c - one block of memory for all buffers, and the part of each node.
 */
#include "backends/cpu/exec_plan.h"

/* Behind the shared part: scratch, then the loss of each row of each loss, where things are in the tile under way, and
 * which rows were right. */
typedef struct tail {
	size_t losses;               /* rows of all losses */
	size_t starts, owners, tile; /* indices: samples + 1, tokens and masked positions of a tile */
} tail;

/* Rows of a loss in the largest micro-batch. */
static size_t loss_rows(const ls_exec *exec, const ls_op *loss)
{
	return ls_round_up64((size_t)ls_tensor_rows(loss->in[0], exec->microbatch));
}

static tail tail_of(const ls_exec *exec)
{
	const ls_graph *graph = exec->graph;
	size_t largest = (size_t)exec->largest;
	tail t = { 0 };

	for (int i = 0; i < exec->loss_count; i++)
		t.losses += loss_rows(exec, &exec->losses[i]);
	if (graph->tokens_max > 0) {
		t.starts = ls_round_up64(largest + 1);
		t.owners = ls_round_up64(largest * (size_t)graph->tokens_max);
		t.tile = ls_round_up64(largest * (size_t)graph->masked_max);
	}
	return t;
}

size_t ls_exec_whole_bytes(const ls_exec *exec)
{
	tail t = tail_of(exec);
	return exec->workspace_bytes + ls_round_up64(exec->scratch_bytes) + t.losses * (sizeof(float) + 1) +
	       (t.starts + t.owners + t.tile) * sizeof(int32_t);
}

static void bind_tail(ls_exec *exec)
{
	tail t = tail_of(exec);
	float *loss = (float *)(exec->workspace + exec->workspace_bytes + ls_round_up64(exec->scratch_bytes));
	exec->start = (int32_t *)(loss + t.losses);
	exec->owner = exec->start + t.starts;
	exec->masked_at = exec->owner + t.owners;
	uint8_t *correct = (uint8_t *)(exec->masked_at + t.tile);
	for (int i = 0; i < exec->loss_count; i++) {
		exec->losses[i].loss = loss;
		exec->losses[i].correct = correct;
		loss += loss_rows(exec, &exec->losses[i]);
		correct += loss_rows(exec, &exec->losses[i]);
	}
}

static void *place_of(ls_exec *exec, int class, int index)
{
	const ls_span *span = ls_exec_span(exec, class, index);
	return span->bytes > 0 ? exec->workspace + span->offset : NULL;
}

static void *gradient_of(ls_exec *exec, int value)
{
	return place_of(exec, ls_exec_is_own_gradient(exec, value) ? LS_SPAN_VALUE : LS_SPAN_GRADIENT, value);
}

/* Node i where it is like `op`: of its type, with the same first input. */
static const ls_op *twin_of(const ls_exec *exec, const ls_op *op, int i)
{
	const ls_op *other = i >= 0 && i < exec->op_count ? &exec->ops[i] : NULL;
	return other && other->type == op->type && other->node->inputs[0] == op->node->inputs[0] ? other : NULL;
}

static void bind_op(ls_exec *exec, int i)
{
	ls_op *op = &exec->ops[i];
	const ls_node *node = op->node;

	op->y = place_of(exec, LS_SPAN_VALUE, node->output);
	op->dy = gradient_of(exec, node->output);
	op->aux = place_of(exec, LS_SPAN_AUX, i);
	op->x_again = place_of(exec, LS_SPAN_RECOMPUTED, i);
	op->scratch = exec->workspace + exec->workspace_bytes;
	op->before = twin_of(exec, op, i - 1);
	op->behind = twin_of(exec, op, i + 1);
	for (int k = 0; k < node->input_count; k++) {
		int value = node->inputs[k];
		float *spare = place_of(exec, LS_SPAN_SPARE, LS_INPUTS_MAX * i + k);
		op->x[k] = value == exec->graph->input ? NULL : place_of(exec, LS_SPAN_VALUE, value);
		op->dx[k] = ls_exec_has_gradient(exec, value) ? place_of(exec, LS_SPAN_GRADIENT, value) : NULL;
		if (spare) {
			op->dx_target[k] = op->dx[k];
			op->dx[k] = spare;
		}
	}
}

ls_status ls_exec_bind(ls_exec *exec)
{
	void *memory = NULL;

	LS_TRY(ls_buffer_new(&memory, ls_exec_whole_bytes(exec), "activations and their gradients"));
	exec->workspace = memory;
	bind_tail(exec);
	exec->logits = place_of(exec, LS_SPAN_VALUE, exec->graph->logits);
	for (int i = 0; i < exec->loss_count; i++) {
		int value = exec->losses[i].node->inputs[0];
		exec->losses[i].scratch = exec->workspace + exec->workspace_bytes;
		exec->losses[i].x[0] = place_of(exec, LS_SPAN_VALUE, value);
		exec->losses[i].dx[0] = ls_exec_has_gradient(exec, value) ? gradient_of(exec, value) : NULL;
	}
	for (int i = 0; i < exec->op_count; i++)
		bind_op(exec, i);
	return LS_OK;
}
