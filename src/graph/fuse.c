/*
 * fuse.c - what neighbours can do together.
 *
 * Each rule keeps every value and gradient bit-for-bit what the separate layers would give.
 *
 *   norm -> relu                    one pass instead of two
 *   norm -> add(.., r) -> relu      the residual is added while the tile is there (relu optional)
 *   conv -> relu                    in the convolution's epilogue, unless:
 *   conv(bias) -> relu -> max_pool  both move behind the pool, where there is a quarter of the data:
 *                                   max(relu(x + b)) = relu(max(x) + b), since rounding is monotonic; gradients go to
 * the same places conv -> norm                    the convolution leaves the moments of its tiles
 */
#include "graph/graph.h"

/* The only consumer of `value`, when there is just one and it is a node of that kind. */
static ls_node *sole_consumer(ls_graph *graph, int value, ls_node_kind kind)
{
	if (ls_graph_consumers(graph, value) != 1)
		return NULL;
	for (int i = 0; i < graph->node_count; i++) {
		ls_node *node = &graph->nodes[i];
		if (!node->dropped && (node->input == value || node->second == value))
			return node->kind == kind ? node : NULL;
	}
	return NULL;
}

static void absorb_relu(ls_graph *graph, ls_node *node)
{
	ls_node *relu = sole_consumer(graph, node->output, LS_NODE_RELU);
	if (relu == NULL || node->relu)
		return;
	node->relu = 1;
	node->output = relu->output;
	relu->dropped = 1;
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
	ls_node *pool = relu != NULL ? sole_consumer(graph, relu->output, LS_NODE_MAX_POOL)
				     : sole_consumer(graph, conv->output, LS_NODE_MAX_POOL);
	if (pool == NULL || conv->relu)
		return;
	pool->relu = relu != NULL;
	pool->bias = conv->bias;
	conv->bias = LS_NONE;
	pool->input = conv->output;
	if (relu != NULL)
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
	compact(graph);
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].kind == LS_NODE_NORM)
			share_moments(graph, i);
}
