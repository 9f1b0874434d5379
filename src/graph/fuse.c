/*
 * fuse.c - what neighbours can do together.
 *
 * Each rule keeps every value and gradient bit-for-bit what the separate layers would give.
 *
 *   norm -> relu                    one pass instead of two
 *   norm -> add(.., r) -> relu      the residual is added while the tile is there (relu optional)
 *   conv -> relu                    in the convolution's epilogue, unless:
 *   conv(bias) -> relu -> max_pool  both move behind the pool, where there is a quarter of the data:
 *                                   max(relu(x + b)) = relu(max(x) + b), since rounding is monotonic;
 *                                   gradients go to the same places
 *   conv -> norm                    the convolution micro-batches the moments of its tiles
 *   linear -> relu or gelu          in the linear layer's epilogue
 *   [dropout ->] add -> layer_norm  one pass over a residual branch instead of three
 */
#include "graph/graph.h"

/* The only consumer of `value`, when there is just one and it is a node of that kind. */
static ls_node *sole_consumer(ls_graph *graph, int value, ls_node_kind kind)
{
	if (ls_graph_consumers(graph, value) != 1)
		return NULL;
	for (int i = 0; i < graph->node_count; i++) {
		ls_node *node = &graph->nodes[i];
		if (!node->dropped && (node->input == value || node->second == value || node->third == value))
			return node->kind == kind ? node : NULL;
	}
	return NULL;
}

static void absorb_relu(ls_graph *graph, ls_node *node)
{
	ls_node *relu = sole_consumer(graph, node->output, LS_NODE_RELU);
	if (!relu || node->relu)
		return;
	node->relu = 1;
	node->output = relu->output;
	relu->dropped = 1;
}

static void absorb_gelu(ls_graph *graph, ls_node *node)
{
	ls_node *gelu = sole_consumer(graph, node->output, LS_NODE_GELU);
	if (!gelu || node->relu)
		return;
	node->gelu = gelu->gelu;
	node->output = gelu->output;
	gelu->dropped = 1;
}

/* The producer of `value`, when it is of that kind and nobody else reads it. */
static ls_node *sole_producer(ls_graph *graph, int value, ls_node_kind kind)
{
	int id = ls_graph_producer(graph, value);
	if (id == LS_NONE || graph->nodes[id].kind != kind || ls_graph_consumers(graph, value) != 1)
		return NULL;
	return &graph->nodes[id];
}

/* The branch that is dropped becomes the norm's input, the other its second operand. */
static void absorb_residual(ls_graph *graph, ls_node *norm)
{
	ls_node *add = sole_producer(graph, norm->input, LS_NODE_ADD);
	if (!add || add->relu || add->input == add->second)
		return;
	norm->input = add->input;
	norm->second = add->second;
	add->dropped = 1;
	ls_node *first = sole_producer(graph, norm->input, LS_NODE_DROPOUT);
	ls_node *drop = first ? first : sole_producer(graph, norm->second, LS_NODE_DROPOUT);
	if (!drop || graph->values[drop->input].domain != LS_TOKENS)
		return;
	int other = first ? norm->second : norm->input;
	if (drop->input == other)
		return;
	norm->input = drop->input;
	norm->second = other;
	norm->probability = drop->probability;
	norm->ordinal = drop->ordinal;
	drop->dropped = 1;
}

/* The norm moves to the add's place, where the other operand is sure to be there. */
static void absorb_norm_into_add(ls_graph *graph, ls_node *add)
{
	int operands[2] = { add->input, add->second };

	for (int k = 0; k < 2; k++) {
		int id = ls_graph_producer(graph, operands[k]);
		if (id == LS_NONE || operands[0] == operands[1])
			continue;
		ls_node *norm = &graph->nodes[id];
		if (norm->kind != LS_NODE_NORM || norm->relu || norm->second != LS_NONE ||
		    ls_graph_consumers(graph, operands[k]) != 1)
			continue;
		int output = add->output;
		*add = *norm;
		add->second = operands[1 - k];
		add->output = output;
		norm->dropped = 1;
		return;
	}
}

static void move_behind_pool(ls_graph *graph, ls_node *conv)
{
	ls_node *relu = sole_consumer(graph, conv->output, LS_NODE_RELU);
	ls_node *pool = relu ? sole_consumer(graph, relu->output, LS_NODE_MAX_POOL)
			     : sole_consumer(graph, conv->output, LS_NODE_MAX_POOL);
	if (!pool || conv->relu)
		return;
	pool->relu = relu != NULL;
	pool->bias = conv->bias;
	conv->bias = LS_NONE;
	pool->input = conv->output;
	if (relu)
		relu->dropped = 1;
}

static void share_moments(ls_graph *graph, int id)
{
	int producer = ls_graph_producer(graph, graph->nodes[id].input);
	if (producer == LS_NONE || graph->nodes[producer].kind != LS_NODE_CONV || graph->nodes[producer].relu)
		return;
	if (graph->nodes[producer].norm_consumer != LS_NONE)
		return;
	graph->nodes[producer].norm_consumer = id;
}

typedef void (*rule)(ls_graph *graph, ls_node *node);

static void each(ls_graph *graph, ls_node_kind kind, rule apply)
{
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped && graph->nodes[i].kind == kind)
			apply(graph, &graph->nodes[i]);
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
	each(graph, LS_NODE_ADD, absorb_norm_into_add);
	each(graph, LS_NODE_NORM, absorb_relu);
	each(graph, LS_NODE_ADD, absorb_relu);
	each(graph, LS_NODE_CONV, move_behind_pool);
	each(graph, LS_NODE_CONV, absorb_relu);
	each(graph, LS_NODE_LINEAR, absorb_relu);
	each(graph, LS_NODE_LINEAR, absorb_gelu);
	each(graph, LS_NODE_LAYER_NORM, absorb_residual);
	compact(graph);
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].kind == LS_NODE_NORM)
			share_moments(graph, i);
}
