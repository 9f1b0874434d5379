/*
 * fuse.c - fusion of neighbouring operators.
 *
 * Each rule keeps every value and gradient bit-for-bit what the separate layers would give. What an operator can take
 * part in is in its row (`fuses`, ops/op.h):
 *
 *   norm -> relu                    one pass instead of two
 *   norm -> add(.., r) -> relu      the residual is added while the tile is there (relu optional)
 *   conv -> relu                    in the convolution's epilogue, unless:
 *   conv(bias) -> relu -> max_pool  both move behind the pool, where there is a quarter of the data:
 *                                   max(relu(x + b)) = relu(max(x) + b), since rounding is monotonic;
 *                                   gradients go to the same places
 *   conv -> norm                    the convolution makes the moments of its tiles
 *   linear -> relu or gelu          in the linear layer's epilogue
 *   [dropout ->] add -> layer_norm  one pass over a residual branch instead of three
 */
#include "graph/graph.h"

static int can(const ls_node *node, unsigned what)
{
	return (node->type->fuses & what) != 0;
}

/* The only consumer of `value`, when there is just one and it is a node. */
static ls_node *sole_consumer(ls_graph *graph, int value)
{
	if (ls_graph_consumers(graph, value) != 1)
		return NULL;
	for (int i = 0; i < graph->node_count; i++) {
		ls_node *node = &graph->nodes[i];
		for (int k = 0; k < node->input_count && !node->dropped; k++)
			if (node->inputs[k] == value)
				return node;
	}
	return NULL;
}

static ls_node *sole_consumer_of_type(ls_graph *graph, int value, const ls_op_type *type)
{
	ls_node *node = sole_consumer(graph, value);
	return node && node->type == type ? node : NULL;
}

/* The producer of `value`, when it is of that type and nobody else reads it. */
static ls_node *sole_producer(ls_graph *graph, int value, const ls_op_type *type)
{
	int id = ls_graph_producer(graph, value);
	if (id == LS_NONE || graph->nodes[id].type != type || ls_graph_consumers(graph, value) != 1)
		return NULL;
	return &graph->nodes[id];
}

static void absorb_activation(ls_graph *graph, ls_node *node)
{
	ls_node *next = sole_consumer(graph, node->output);
	if (!next || node->activation)
		return;
	if (next->type == &ls_op_relu && can(node, LS_FUSES_RELU))
		node->activation = LS_ACT_RELU;
	else if (next->type == &ls_op_gelu && can(node, LS_FUSES_GELU))
		node->activation =
			((const ls_gelu_options *)next->attributes)->approximate ? LS_ACT_GELU_TANH : LS_ACT_GELU;
	else
		return;
	node->output = next->output;
	next->dropped = 1;
}

/* The branch that is dropped out becomes the norm's input, the other its second operand. */
static void absorb_sum_before(ls_graph *graph, ls_node *norm)
{
	ls_node *add = sole_producer(graph, norm->inputs[0], &ls_op_add);
	if (!add || add->activation || add->inputs[0] == add->inputs[1])
		return;
	norm->inputs[0] = add->inputs[0];
	norm->inputs[1] = add->inputs[1];
	norm->input_count = 2;
	add->dropped = 1;
	ls_node *first = sole_producer(graph, norm->inputs[0], &ls_op_dropout);
	ls_node *drop = first ? first : sole_producer(graph, norm->inputs[1], &ls_op_dropout);
	if (!drop)
		return;
	int other = first ? norm->inputs[1] : norm->inputs[0];
	if (drop->inputs[0] == other)
		return;
	norm->inputs[0] = drop->inputs[0];
	norm->inputs[1] = other;
	norm->dropout = ((const ls_dropout_options *)drop->attributes)->p;
	norm->stream = drop->stream;
	drop->dropped = 1;
}

/* The norm moves to the add's place, where the other operand is sure to be there. */
static void absorb_norm_into_add(ls_graph *graph, ls_node *add)
{
	int operands[2] = { add->inputs[0], add->inputs[1] };

	for (int k = 0; k < 2; k++) {
		int id = ls_graph_producer(graph, operands[k]);
		if (id == LS_NONE || operands[0] == operands[1])
			continue;
		ls_node *norm = &graph->nodes[id];
		if (!can(norm, LS_FUSES_SUM_BEHIND) || norm->activation || norm->input_count == 2 ||
		    ls_graph_consumers(graph, operands[k]) != 1)
			continue;
		int output = add->output;
		*add = *norm;
		add->inputs[1] = operands[1 - k];
		add->input_count = 2;
		add->output = output;
		norm->dropped = 1;
		return;
	}
}

static void move_behind_pool(ls_graph *graph, ls_node *conv)
{
	ls_node *relu = sole_consumer_of_type(graph, conv->output, &ls_op_relu);
	ls_node *pool = sole_consumer(graph, relu ? relu->output : conv->output);
	if (!pool || !can(pool, LS_FUSES_BIAS) || conv->activation)
		return;
	pool->activation = relu ? LS_ACT_RELU : LS_ACT_NONE;
	pool->params[LS_BIAS] = conv->params[LS_BIAS];
	conv->params[LS_BIAS] = LS_NONE;
	pool->inputs[0] = conv->output;
	if (relu)
		relu->dropped = 1;
}

static void share_moments(ls_graph *graph, int id)
{
	int producer = ls_graph_producer(graph, graph->nodes[id].inputs[0]);
	if (producer == LS_NONE)
		return;
	ls_node *conv = &graph->nodes[producer];
	if (can(conv, LS_MAKES_MOMENTS) && !conv->activation && conv->moments_to == LS_NONE)
		conv->moments_to = id;
}

typedef void (*rule)(ls_graph *graph, ls_node *node);

/* Apply a rule to every node whose type can do `what`; 0: to sums. */
static void each(ls_graph *graph, unsigned what, rule apply)
{
	for (int i = 0; i < graph->node_count; i++) {
		ls_node *node = &graph->nodes[i];
		if (!node->dropped && (what ? can(node, what) : node->type == &ls_op_add))
			apply(graph, node);
	}
}

/* Close the gaps; node ids change, so this comes before anything refers to them. */
static void compact(ls_graph *graph)
{
	int kept = 0;
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped)
			graph->nodes[kept++] = graph->nodes[i];
	graph->node_count = kept;
}

void ls_graph_fuse(ls_graph *graph)
{
	each(graph, 0, absorb_norm_into_add);
	each(graph, LS_GIVES_BIAS, move_behind_pool);
	each(graph, LS_FUSES_RELU | LS_FUSES_GELU, absorb_activation);
	each(graph, LS_FUSES_SUM_BEFORE, absorb_sum_before);
	compact(graph);
	for (int i = 0; i < graph->node_count; i++)
		if (can(&graph->nodes[i], LS_TAKES_MOMENTS))
			share_moments(graph, i);
}
