/*
 * graph.c - a graph from its input to its loss: the public builders, and the end of building.
 */
#include "graph/graph.h"
#include "graph/task.h"

#include <stdlib.h>

#include <lockstep/text.h>

#include "base/handles.h"
#include "base/options.h"
#include "ops/shape.h"

static const ls_value invalid = { LS_NONE };

ls_status ls_graph_new(ls_graph **out)
{
	LS_TRY(ls_argument_check(out, "out"));
	ls_graph *graph = calloc(1, sizeof(*graph));
	if (!graph)
		return ls_fail(LS_EMEMORY, "no memory for a graph");
	graph->input = graph->logits = LS_NONE;
	ls_status status = ls_handle_add(graph, LS_GRAPH_KIND);
	if (status == LS_OK)
		*out = graph;
	else
		free(graph);
	return status;
}

void ls_graph_free(ls_graph *graph)
{
	if (!graph || !ls_handle_remove(graph, LS_GRAPH_KIND))
		return;
	ls_arena_release(&graph->arena);
	free(graph->values);
	free(graph->nodes);
	free(graph->params.rows);
	free(graph);
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

static ls_value add_input(ls_graph *graph, ls_tensor tensor)
{
	tensor.is_input = tensor.is_constant = 1;
	ls_value value = ls_graph_add_value(graph, tensor);
	graph->input = value.id;
	return value;
}

ls_value ls_input(ls_graph *graph, int channels, int height, int width)
{
	if (ls_graph_check(graph) != LS_OK)
		return invalid;
	if (graph->input != LS_NONE)
		return ls_graph_mistake(graph, LS_EINVALID, "a graph has one input; ls_input() is its second");
	if (channels < 1 || height < 1 || width < 1 || channels > 65536 || height > 16384 || width > 16384)
		return ls_graph_mistake(graph, LS_EINVALID, "an input of %d channels, %d x %d is not possible",
					channels, height, width);
	return add_input(graph, ls_tensor_make(channels, height, width, LS_SAMPLES));
}

ls_value ls_text_input(ls_graph *graph, int longest, int masked)
{
	if (ls_graph_check(graph) != LS_OK)
		return invalid;
	if (graph->input != LS_NONE)
		return ls_graph_mistake(graph, LS_EINVALID, "a graph has one input; ls_text_input() is its second");
	if (longest < 1 || longest > LS_TOKENS_MAX || masked < 0 || masked > longest)
		return ls_graph_mistake(graph, LS_EINVALID,
					"samples of %d tokens, %d of them to be predicted: not possible", longest,
					masked);
	ls_value value = add_input(graph, ls_tensor_make(1, longest, 1, LS_TOKENS));
	graph->tokens_max = longest;
	graph->masked_max = masked;
	return value;
}

/* ---- the builders that follow from the list of operators ----------------------------------------------------------
 */

#define PLAIN(op)                                                                                                      \
	ls_value ls_##op(ls_graph *graph, ls_value x)                                                                  \
	{                                                                                                              \
		return ls_graph_add(graph, &ls_op_##op, NULL, &x, NULL);                                               \
	}
#define PAIR(op)                                                                                                       \
	ls_value ls_##op(ls_graph *graph, ls_value a, ls_value b)                                                      \
	{                                                                                                              \
		return ls_graph_add(graph, &ls_op_##op, NULL, (ls_value[]){ a, b }, NULL);                             \
	}
#define LOSS(op)                                                                                                       \
	void ls_##op(ls_graph *graph, ls_value x)                                                                      \
	{                                                                                                              \
		ls_graph_add(graph, &ls_op_##op, NULL, &x, NULL);                                                      \
	}

/* Attributes as this version has them, of a program that may know fewer or more. */
static const void *take(ls_graph *graph, void *own, size_t own_size, const void *options, size_t size)
{
	ls_status status = ls_options_copy(own, own_size, options, size);
	if (status != LS_OK && ls_handle_check(graph, LS_GRAPH_KIND) == LS_OK)
		ls_graph_mistake(graph, status, "%s", ls_last_error());
	return own;
}
#define TAKEN(type) take(graph, &(type){ 0 }, sizeof(type), options, size)

#define OPTIONS(op, type)                                                                                              \
	ls_value ls_##op##_sized(ls_graph *graph, ls_value x, const type *options, size_t size)                        \
	{                                                                                                              \
		return ls_graph_add(graph, &ls_op_##op, NULL, &x, TAKEN(type));                                        \
	}
#define TRIPLE(op, type)                                                                                               \
	ls_value ls_##op##_sized(ls_graph *graph, ls_value q, ls_value k, ls_value v, const type *options,             \
				 size_t size)                                                                          \
	{                                                                                                              \
		return ls_graph_add(graph, &ls_op_##op, NULL, (ls_value[]){ q, k, v }, TAKEN(type));                   \
	}
#define LAYER(op, type)                                                                                                \
	ls_value ls_##op##_sized(ls_graph *graph, ls_value x, const char *name, const type *options, size_t size)      \
	{                                                                                                              \
		return ls_graph_add(graph, &ls_op_##op, name, &x, TAKEN(type));                                        \
	}
#define OPTIONS_LOSS(op, type)                                                                                         \
	void ls_##op##_sized(ls_graph *graph, ls_value x, const type *options, size_t size)                            \
	{                                                                                                              \
		ls_graph_add(graph, &ls_op_##op, NULL, &x, TAKEN(type));                                               \
	}
#define OWN(op)

LS_OPERATORS(PLAIN, PAIR, OPTIONS, TRIPLE, LAYER, LOSS, OPTIONS_LOSS, OWN)

/* ---- the others -------------------------------------------------------------------------------------------------- */

/* A linear layer reads (C, H, W) as it is: skip a flatten, and the packing of an input it would gather anyway. */
static ls_value before_flatten(const ls_graph *graph, ls_value x)
{
	const ls_op_type *const skipped[] = { &ls_op_flatten, &ls_op_pack };
	for (int k = 0; k < 2; k++) {
		int producer = ls_graph_producer(graph, x.id);
		if (producer != LS_NONE && graph->nodes[producer].type == skipped[k])
			x.id = graph->nodes[producer].inputs[0];
	}
	return x;
}

ls_value ls_linear_sized(ls_graph *graph, ls_value x, const char *name, const ls_linear_options *options, size_t size)
{
	ls_linear_options own = { 0 };

	take(graph, &own, sizeof(own), options, size);
	if (!ls_graph_usable(graph, x))
		return invalid;
	if (graph->tokens_max > 0 || own.per_position)
		return ls_graph_add(graph, &ls_op_linear, name, &x, &own);
	x = before_flatten(graph, x);
	return ls_graph_add(graph, &ls_op_linear_map, name, &x, &own);
}

ls_value ls_tied_linear(ls_graph *graph, ls_value x, ls_value embedding, const char *name)
{
	if (!ls_graph_usable(graph, x) || !ls_graph_usable(graph, embedding))
		return invalid;
	int owner = ls_graph_producer(graph, embedding.id);
	if (owner == LS_NONE || graph->nodes[owner].type != &ls_op_embedding)
		return ls_graph_mistake(graph, LS_EINVALID, "tied_linear needs the value of an ls_embedding()");
	ls_linear_options options = { .out_features =
					      graph->params.rows[graph->nodes[owner].params[LS_WEIGHT]].layout.out,
				      .no_bias = !name,
				      .init = LS_WEIGHTS_NORMAL };
	return ls_graph_add_borrower(graph, &ls_op_linear, name ? name : "tied_linear", x, &options, owner);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Drop the producers of values that are never read, last first; a layer with parameters would get no gradient. */
static ls_status drop_unread(ls_graph *graph)
{
	for (int i = graph->node_count - 1; i >= 0; i--) {
		ls_node *node = &graph->nodes[i];
		int rows[LS_NODE_ROWS];
		if (ls_graph_consumers(graph, node->output) > 0)
			continue;
		if (ls_node_rows(graph, node, rows) > 0)
			return ls_fail(LS_EINVALID,
				       "the loss does not depend on layer '%s'; use its output or remove it",
				       node->name);
		node->dropped = 1;
	}
	return LS_OK;
}

static ls_status check_output(const ls_graph *graph, ls_value output)
{
	const ls_tensor *out = &graph->values[output.id];
	if (out->is_input)
		return ls_fail(LS_EINVALID, "a graph needs at least one layer between its input and its logits");
	if (graph->predicts_next)
		return LS_OK;
	if (out->domain != LS_SAMPLES || out->height * out->width != 1)
		return ls_fail(LS_EINVALID, "logits must be (classes, 1, 1), not %s(%d, %d, %d)",
			       out->domain != LS_SAMPLES ? "one row per token, " : "", out->channels, out->height,
			       out->width);
	return LS_OK;
}

/* Every id that may stand at a masked position has a class. */
static ls_status check_losses(const ls_graph *graph)
{
	for (int i = 0; i < graph->loss_count; i++) {
		const ls_tensor *in = &graph->values[graph->losses[i].inputs[0]];
		if (in->domain == LS_MASKED && in->channels < ls_graph_vocabulary(graph))
			return ls_fail(LS_EINVALID, "logits of masked positions have %d classes, and the vocabulary %d",
				       in->channels, ls_graph_vocabulary(graph));
	}
	return LS_OK;
}

/* Somebody passes the gradient on to every value that needs one. */
static int gets_gradient(const ls_graph *graph, int value)
{
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->losses[i].inputs[0] == value)
			return 1;
	for (int i = 0; i < graph->node_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			if (graph->nodes[i].inputs[k] == value && graph->values[graph->nodes[i].output].needs_gradient)
				return 1;
	return 0;
}

/* Custom operators may have no backward. */
static ls_status check_trained(const ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->values[graph->nodes[i].output].needs_gradient &&
		    !gets_gradient(graph, graph->nodes[i].output))
			return ls_fail(LS_EINVALID,
				       "layer '%s' would not be trained: the operator that reads it has no backward",
				       graph->nodes[i].name);
	return LS_OK;
}

/* Which layer writes the gradient of a weight that several share, and which add to it. */
static void order_borrowers(ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		for (int later = i + 1; later < graph->node_count && graph->nodes[i].borrowed != LS_NONE; later++)
			graph->nodes[i].adds_borrowed |= graph->nodes[later].borrowed == graph->nodes[i].borrowed;
}

ls_status ls_graph_check(const ls_graph *graph)
{
	LS_TRY(ls_handle_check(graph, LS_GRAPH_KIND));
	return graph->status == LS_OK ? LS_OK : ls_fail(graph->status, "%s", graph->message);
}

void ls_graph_set_task(ls_graph *graph, ls_task task)
{
	graph->task = task;
}

static void add_usual_loss(ls_graph *graph, ls_value output)
{
	if (graph->task == LS_TASK_REGRESSION)
		ls_mean_squared_error(graph, output);
	else if (graph->task == LS_TASK_MULTI_LABEL)
		ls_binary_cross_entropy(graph, output);
	else
		ls_cross_entropy(graph, output, (ls_cross_entropy_options){ 0 });
}

ls_status ls_graph_finish(ls_graph *graph, ls_value output)
{
	LS_TRY(ls_handle_check(graph, LS_GRAPH_KIND));
	if (ls_graph_usable(graph, output))
		LS_TRY(check_output(graph, output));
	if (graph->status == LS_OK && graph->loss_count == 0)
		add_usual_loss(graph, output);
	LS_TRY(ls_graph_check(graph));
	LS_TRY(check_losses(graph));
	LS_TRY(drop_unread(graph));
	if (ls_graph_consumers(graph, output.id) == 0)
		return ls_fail(LS_EINVALID, "the loss does not depend on the output of the graph");
	graph->logits = output.id;
	ls_graph_fuse(graph);
	order_borrowers(graph);
	ls_graph_mark_gradients(graph);
	LS_TRY(check_trained(graph));
	graph->finished = 1;
	ls_params_lay_out(&graph->params, 0);
	return LS_OK;
}

ls_status ls_graph_finish_pretraining(ls_graph *graph, ls_value logits, ls_value token_logits)
{
	if (ls_graph_usable(graph, token_logits) && graph->values[token_logits.id].domain != LS_MASKED)
		return ls_fail(LS_EINVALID, "logits of tokens must be made of masked positions (ls_masked_positions)");
	ls_cross_entropy(graph, logits, (ls_cross_entropy_options){ 0 });
	ls_cross_entropy(graph, token_logits, (ls_cross_entropy_options){ 0 });
	return ls_graph_finish(graph, logits);
}

ls_status ls_graph_finish_language(ls_graph *graph, ls_value token_logits)
{
	if (ls_graph_usable(graph, token_logits) && graph->values[token_logits.id].domain != LS_MASKED)
		return ls_fail(LS_EINVALID, "logits of tokens must be made of masked positions (ls_masked_positions)");
	LS_TRY(ls_graph_check(graph));
	graph->predicts_next = 1;
	return ls_graph_finish(graph, token_logits);
}

void ls_graph_keep_unreachable(ls_graph *graph, int keep)
{
	ls_params_lay_out(&graph->params, keep);
}
