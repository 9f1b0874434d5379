/*
 * exec_spans.c - the lifetimes of a graph's buffers, and their offsets.
 *
 * Time runs over 2F + 1 moments for F nodes: node i goes forward at i, the loss is at F, node i goes backward at 2F -
 * i. Every buffer has a first and a last moment; buffers that never live together share addresses (place.h).
 *
 *   value     from its producer to its last reader, forward or (when backward reads it again) backward
 *   gradient  from the first node backward that writes it to its producer's backward
 *   aux       what a node keeps for its own backward
 *   spare     a temporary gradient, of an operator that cannot add to what is there
 *   again     a convolution's input that its norm makes once more for backward, instead of keeping it
 *   scratch   one region, used by one node at a time
 */
#include "backends/cpu/exec_plan.h"
#include "kernels/conv.h"

/* Spans lie as five tables: values, gradients (by value), aux, spare (by node and input), recomputed (by node). */
ls_span *ls_exec_span(const ls_exec *exec, int class, int index)
{
	int values = exec->graph->value_count, nodes = exec->op_count;
	int first[LS_SPAN_CLASSES] = { 0, values, 2 * values, 2 * values + nodes,
				       2 * values + (1 + LS_INPUTS_MAX) * nodes };
	return &exec->spans[first[class] + index];
}

static int forward_time(int node)
{
	return node;
}

static int backward_time(const ls_exec *exec, int node)
{
	return 2 * exec->op_count - node;
}

static void extend(ls_span *span, int time)
{
	if (time < span->from)
		span->from = time;
	if (time > span->to)
		span->to = time;
}

static void want(ls_span *span, size_t bytes, int from, int to)
{
	*span = (ls_span){ .bytes = bytes, .from = from, .to = to };
}

/* Images and what is made of them without parameters that are trained have no gradient. */
int ls_exec_has_gradient(const ls_exec *exec, int value)
{
	return !exec->inference && exec->graph->values[value].needs_gradient;
}

/* Somebody needs what the backward pass of a node computes. */
static int goes_backward(const ls_exec *exec, int node)
{
	return ls_exec_has_gradient(exec, exec->ops[node].node->output);
}

static size_t value_bytes(const ls_exec *exec, int value)
{
	return sizeof(float) * (size_t)(ls_tensor_floats(&exec->graph->values[value]) * exec->largest);
}

/* With values of less than 2^31 floats per sample (graph.c) a span stays below 2^62 bytes: products in int64 are safe.
 */
#define MICROBATCH_MOST (INT64_C(1) << 28)
/* And thousands of spans of this size can be added up. More than any machine has. */
#define SPAN_MOST ((size_t)1 << 48)

ls_status ls_exec_check_microbatch(const ls_exec *exec)
{
	if (exec->microbatch > MICROBATCH_MOST)
		return ls_fail(LS_EMEMORY,
			       "%lld samples in one micro-batch are too many: at most %lld; use a smaller batch",
			       (long long)exec->microbatch, (long long)MICROBATCH_MOST);
	return LS_OK;
}

static ls_status check_spans(const ls_exec *exec)
{
	size_t most = exec->scratch_bytes;
	for (size_t i = 0; i < exec->span_count; i++)
		most = exec->spans[i].bytes > most ? exec->spans[i].bytes : most;
	if (most > SPAN_MOST)
		return ls_fail(LS_EMEMORY,
			       "%lld samples at once need a block of %.1f TB for one layer; use a smaller batch",
			       (long long)exec->largest, (double)most / 1e12);
	return LS_OK;
}

static int keeps(const ls_op *op)
{
	return op->type->keeps ? op->type->keeps(op->node) : 0;
}

static int loss_reads(const ls_exec *exec, int value)
{
	for (int i = 0; i < exec->loss_count; i++)
		if (exec->losses[i].node->inputs[0] == value)
			return 1;
	return 0;
}

/* Logits of masked positions are too large to have twice: the loss puts their gradient in their place, unless others
 * read them or backward does (a relu behind them, say). */
int ls_exec_is_own_gradient(const ls_exec *exec, int value)
{
	if (exec->graph->values[value].domain != LS_MASKED || !loss_reads(exec, value) ||
	    ls_graph_consumers(exec->graph, value) != 1)
		return 0;
	return !(keeps(&exec->ops[ls_graph_producer(exec->graph, value)]) & LS_KEEP_OUTPUT);
}

static void plan_output(ls_exec *exec, int i)
{
	const ls_node *node = exec->ops[i].node;
	int backward = goes_backward(exec, i), kept = backward && (keeps(&exec->ops[i]) & LS_KEEP_OUTPUT);

	kept = kept || (backward && ls_exec_is_own_gradient(exec, node->output));

	want(ls_exec_span(exec, LS_SPAN_VALUE, node->output), value_bytes(exec, node->output), forward_time(i),
	     kept ? backward_time(exec, i) : forward_time(i));
	if (ls_exec_has_gradient(exec, node->output) && !ls_exec_is_own_gradient(exec, node->output))
		want(ls_exec_span(exec, LS_SPAN_GRADIENT, node->output), value_bytes(exec, node->output),
		     backward_time(exec, i), backward_time(exec, i));
}

static void plan_read(ls_exec *exec, int i, int value, int again)
{
	if (value == exec->graph->input)
		return;
	extend(ls_exec_span(exec, LS_SPAN_VALUE, value), forward_time(i));
	if (again)
		extend(ls_exec_span(exec, LS_SPAN_VALUE, value), backward_time(exec, i));
	if (ls_exec_has_gradient(exec, value) && goes_backward(exec, i))
		extend(ls_exec_span(exec, LS_SPAN_GRADIENT, value), backward_time(exec, i));
}

static void plan_reads(ls_exec *exec, int i)
{
	const ls_op *op = &exec->ops[i];
	int again = goes_backward(exec, i) && (keeps(op) & LS_KEEP_INPUT);
	int others = goes_backward(exec, i) && (keeps(op) & LS_KEEP_OTHERS);

	if (op->maker)
		want(ls_exec_span(exec, LS_SPAN_RECOMPUTED, i), value_bytes(exec, op->node->inputs[0]),
		     backward_time(exec, i), backward_time(exec, i));
	plan_read(exec, i, op->node->inputs[0], again && !op->maker);
	for (int k = 1; k < op->node->input_count; k++)
		plan_read(exec, i, op->node->inputs[k], others);
}

static void plan_scratch(ls_exec *exec, const ls_op *op)
{
	size_t bytes = op->type->scratch_bytes ? op->type->scratch_bytes(op, exec->largest) : 0;
	exec->scratch_bytes = bytes > exec->scratch_bytes ? bytes : exec->scratch_bytes;
}

static void plan_aux(ls_exec *exec, int i)
{
	ls_op *op = &exec->ops[i];
	int last = goes_backward(exec, i) ? backward_time(exec, i) : forward_time(i);
	int first =
		op->moments_from ? (int)(op->moments_from - exec->ops) : i; /* the convolution fills in the moments */

	if (op->type->aux_bytes)
		want(ls_exec_span(exec, LS_SPAN_AUX, i), op->type->aux_bytes(op, exec->largest), forward_time(first),
		     last);
	plan_scratch(exec, op);
}

/* Which node writes a gradient first, and which nodes add to it: decided in backward order. A node delivers the
 * gradient of its last operand first. */
static void plan_adds(ls_exec *exec, char *written)
{
	for (int i = exec->op_count - 1; i >= 0; i--) {
		ls_op *op = &exec->ops[i];
		for (int k = op->node->input_count - 1; k >= 0; k--) {
			int value = op->node->inputs[k];
			if (!ls_exec_has_gradient(exec, value) || !goes_backward(exec, i))
				continue;
			op->add_dx[k] = written[value];
			written[value] = 1;
			if (op->add_dx[k] && !(op->type->adds >> k & 1))
				want(ls_exec_span(exec, LS_SPAN_SPARE, LS_INPUTS_MAX * i + k), value_bytes(exec, value),
				     backward_time(exec, i), backward_time(exec, i));
		}
	}
}

static void link_moments(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count; i++) {
		int norm = exec->ops[i].node->moments_to;
		if (norm == LS_NONE || exec->inference || ls_op_is_frozen_norm(&exec->ops[norm]))
			continue;
		exec->ops[i].moments_to = &exec->ops[norm];
		exec->ops[norm].moments_from = &exec->ops[i];
	}
}

/*
 * A norm's input is kept for its own backward; where a convolution alone reads its output, the output can be recomputed
 * from it, in cache, when the convolution goes backward, and need not be kept.
 */
static void link_makers(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count && !exec->inference; i++) {
		const ls_node *node = exec->ops[i].node;
		int maker = ls_graph_producer(exec->graph, node->inputs[0]);
		if (maker == LS_NONE || !(node->type->fuses & LS_TAKES_REMADE_INPUT) || !exec->ops[maker].type->remake)
			continue;
		if (!goes_backward(exec, i))
			continue;
		if (exec->ops[maker].node->input_count == 1 && ls_graph_consumers(exec->graph, node->inputs[0]) == 1)
			exec->ops[i].maker = &exec->ops[maker];
	}
}

static ls_op make_op(const ls_exec *exec, const ls_node *node)
{
	const ls_graph *graph = exec->graph;
	ls_op op = { .node = node,
		     .type = node->type,
		     .threads = exec->threads,
		     .bf16 = ls_op_bf16_kernels(graph->precision, node->type),
		     .conv_algorithm = graph->precision != LS_PRECISION_FP32 ? LS_CONV_DIRECT : graph->conv_algorithm,
		     .out = node->output != LS_NONE ? &graph->values[node->output] : NULL };

	for (int k = 0; k < node->input_count; k++)
		op.in[k] = &graph->values[node->inputs[k]];
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++) {
		int row = slot == LS_WEIGHT && node->borrowed != LS_NONE ? node->borrowed : node->params[slot];
		if (row == LS_NONE)
			continue;
		op.params[slot] = &graph->params.rows[row];
		op.shared_at[slot] = ls_graph_shared_place(graph, node, row);
	}
	return op;
}

ls_status ls_exec_make_ops(ls_exec *exec)
{
	const ls_graph *graph = exec->graph;

	exec->op_count = graph->node_count;
	exec->ops = ls_arena_alloc(&exec->arena, sizeof(*exec->ops) * (size_t)exec->op_count);
	exec->span_count = 2 * (size_t)graph->value_count + (2 + LS_INPUTS_MAX) * (size_t)exec->op_count;
	exec->spans = ls_arena_alloc(&exec->arena, sizeof(*exec->spans) * exec->span_count);
	if (!exec->ops || !exec->spans)
		return LS_EMEMORY;
	for (int i = 0; i < exec->op_count; i++)
		exec->ops[i] = make_op(exec, &graph->nodes[i]);
	exec->loss_count = graph->loss_count;
	for (int i = 0; i < exec->loss_count; i++)
		exec->losses[i] = make_op(exec, &graph->losses[i]);
	link_moments(exec);
	link_makers(exec);
	return LS_OK;
}

/* A loss reads logits and is the first to write their gradient. */
static void plan_loss(ls_exec *exec, int logits, char *written)
{
	extend(ls_exec_span(exec, LS_SPAN_VALUE, logits), exec->op_count);
	if (!ls_exec_has_gradient(exec, logits))
		return;
	if (!ls_exec_is_own_gradient(exec, logits))
		extend(ls_exec_span(exec, LS_SPAN_GRADIENT, logits), exec->op_count);
	written[logits] = 1;
}

ls_status ls_exec_plan_memory(ls_exec *exec)
{
	char *written = ls_arena_alloc(&exec->arena, (size_t)exec->graph->value_count);
	if (!written)
		return LS_EMEMORY;
	for (int i = 0; i < exec->op_count; i++)
		plan_output(exec, i);
	for (int i = 0; i < exec->op_count; i++) {
		plan_reads(exec, i);
		plan_aux(exec, i);
	}
	extend(ls_exec_span(exec, LS_SPAN_VALUE, exec->graph->logits),
	       exec->op_count); /* copied out after the losses */
	for (int i = 0; i < exec->loss_count; i++)
		plan_scratch(exec, &exec->losses[i]);
	for (int i = 0; i < exec->loss_count; i++)
		plan_loss(exec, exec->losses[i].node->inputs[0], written);
	if (!exec->inference)
		plan_adds(exec, written);
	LS_TRY(check_spans(exec));
	LS_TRY(ls_place_bound(exec->spans, exec->span_count, &exec->live_bytes));
	return ls_place(exec->spans, exec->span_count, &exec->workspace_bytes);
}
