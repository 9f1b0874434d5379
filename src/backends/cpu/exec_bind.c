/*
 * exec_bind.c - one block of memory for all buffers, and the part of each node.
 */
#include "backends/cpu/exec_plan.h"

/* Behind the shared part: scratch, then loss and correct of each sample and of each masked position, then where things
 * are in the tile under way. */
typedef struct tail {
	size_t microbatch, masked;   /* loss and correct of each */
	size_t starts, owners, tile; /* indices: samples + 1, tokens and masked positions of a tile */
} tail;

static tail tail_of(const ls_exec *exec)
{
	const ls_graph *graph = exec->graph;
	size_t largest = (size_t)exec->largest;
	if (graph->tokens_max == 0)
		return (tail){ .microbatch = ls_round_up64((size_t)exec->microbatch) };
	return (tail){ .microbatch = ls_round_up64((size_t)exec->microbatch),
		       .masked = ls_round_up64((size_t)exec->microbatch * (size_t)graph->masked_max),
		       .starts = ls_round_up64(largest + 1),
		       .owners = ls_round_up64(largest * (size_t)graph->tokens_max),
		       .tile = ls_round_up64(largest * (size_t)graph->masked_max) };
}

size_t ls_exec_whole_bytes(const ls_exec *exec)
{
	tail t = tail_of(exec);
	return exec->workspace_bytes + ls_round_up64(exec->scratch_bytes) +
	       (t.microbatch + t.masked) * (sizeof(float) + 1) + (t.starts + t.owners + t.tile) * sizeof(int32_t);
}

static void bind_tail(ls_exec *exec)
{
	tail t = tail_of(exec);
	exec->loss = (float *)(exec->workspace + exec->workspace_bytes + ls_round_up64(exec->scratch_bytes));
	exec->token_loss = exec->loss + t.microbatch;
	exec->start = (int32_t *)(exec->token_loss + t.masked);
	exec->owner = exec->start + t.starts;
	exec->masked_at = exec->owner + t.owners;
	exec->correct = (uint8_t *)(exec->masked_at + t.tile);
	exec->token_correct = exec->correct + t.microbatch;
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

static void bind_op(ls_exec *exec, int i)
{
	ls_op *op = &exec->ops[i];
	const ls_node *node = op->node;

	op->y = place_of(exec, LS_SPAN_VALUE, node->output);
	op->dy = gradient_of(exec, node->output);
	op->aux = place_of(exec, LS_SPAN_AUX, i);
	op->x_again = place_of(exec, LS_SPAN_RECOMPUTED, i);
	op->scratch = exec->workspace + exec->workspace_bytes;
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
	exec->dlogits = gradient_of(exec, exec->graph->logits);
	if (exec->graph->token_logits != LS_NONE) {
		exec->token_logits = place_of(exec, LS_SPAN_VALUE, exec->graph->token_logits);
		exec->dtoken_logits = gradient_of(exec, exec->graph->token_logits);
	}
	for (int i = 0; i < exec->op_count; i++)
		bind_op(exec, i);
	return LS_OK;
}
