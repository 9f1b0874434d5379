/*
 * facts.c - queries about a graph: producer and consumers of a value, and the cost of a finished graph.
 */
#include "base/handles.h"
#include "graph/graph.h"

int ls_graph_consumers(const ls_graph *graph, int value)
{
	int count = 0;
	for (int i = 0; i < graph->loss_count; i++)
		count += graph->losses[i].inputs[0] == value;
	if (count == 0 && value == graph->logits)
		count++;
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped)
			for (int k = 0; k < graph->nodes[i].input_count; k++)
				count += graph->nodes[i].inputs[k] == value;
	return count;
}

int ls_graph_producer(const ls_graph *graph, int value)
{
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped && graph->nodes[i].output == value)
			return i;
	return LS_NONE;
}

int ls_node_rows(const ls_graph *graph, const ls_node *node, int rows[LS_NODE_ROWS])
{
	int count = 0;
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++)
		if (node->params[slot] != LS_NONE && ls_param_has_gradient(&graph->params.rows[node->params[slot]]))
			rows[count++] = node->params[slot];
	return count;
}

int ls_graph_vocabulary(const ls_graph *graph)
{
	int smallest = 0; /* of several embeddings: all must know a token */
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		int words = node->type == &ls_op_embedding ? graph->params.rows[node->params[LS_WEIGHT]].layout.out : 0;
		if (words > 0 && (smallest == 0 || words < smallest))
			smallest = words;
	}
	return smallest;
}

static int is_shared(const ls_graph *graph, int row)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].lends && graph->nodes[i].params[LS_WEIGHT] == row)
			return 1;
	return 0;
}

/* Floats of a node's own rows up to `end`, without shared words, which lie elsewhere. */
static size_t own_floats(const ls_graph *graph, const ls_node *node, int end)
{
	int rows[LS_NODE_ROWS], count = ls_node_rows(graph, node, rows);
	size_t floats = 0;
	for (int k = 0; k < count && rows[k] != end; k++)
		floats += node->lends && rows[k] == node->params[LS_WEIGHT] ? 0 : graph->params.rows[rows[k]].count;
	return floats;
}

static size_t room(const ls_graph *graph)
{
	size_t most = 0;
	for (int i = 0; i < graph->node_count; i++) {
		size_t floats = own_floats(graph, &graph->nodes[i], LS_NONE);
		most = floats > most ? floats : most;
	}
	return most;
}

/* Floats of shared words up to `end`. */
static size_t shared_words(const ls_graph *graph, int end)
{
	size_t floats = 0;
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].lends && graph->nodes[i].params[LS_WEIGHT] != end)
			floats += graph->params.rows[graph->nodes[i].params[LS_WEIGHT]].count;
		else if (graph->nodes[i].lends)
			break;
	return floats;
}

size_t ls_graph_shared_floats(const ls_graph *graph)
{
	return room(graph) + shared_words(graph, LS_NONE);
}

size_t ls_graph_shared_place(const ls_graph *graph, const ls_node *node, int row)
{
	return is_shared(graph, row) ? room(graph) + shared_words(graph, row) : own_floats(graph, node, row);
}

/* Forward, weight gradient and data gradient cost the same, as far as somebody needs them. Without weights, as in
 * attention, both of backward are of data. */
static double training_passes(const ls_graph *graph, const ls_node *node)
{
	int row = node->borrowed != LS_NONE ? node->borrowed : node->params[LS_WEIGHT];
	int needs_data = graph->values[node->inputs[0]].needs_gradient;

	if (row == LS_NONE)
		return graph->values[node->output].needs_gradient ? 3 : 1;
	return 1 + needs_data + ls_param_has_gradient(&graph->params.rows[row]);
}

static double training_macs(const ls_graph *graph, const ls_node *node, double rows, int count_padding)
{
	ls_cost cost = { .node = node,
			 .in = &graph->values[node->inputs[0]],
			 .out = &graph->values[node->output],
			 .rows = rows,
			 .count_padding = count_padding };

	return node->type->macs ? training_passes(graph, node) * node->type->macs(&cost) : 0;
}

/* Rows per sample of a node's first input. */
static double rows_of(const ls_graph *graph, const ls_node *node, double tokens, double masked)
{
	const ls_tensor *in = &graph->values[node->inputs[0]];
	return in->domain == LS_TOKENS ? tokens : in->domain == LS_MASKED ? masked : (double)in->height * in->width;
}

double ls_graph_text_flop(const ls_graph *graph, double tokens, double masked)
{
	double flop = 0;
	for (int i = 0; i < graph->node_count; i++)
		flop += ls_node_text_flop(graph, i, tokens, masked);
	return flop;
}

double ls_node_text_flop(const ls_graph *graph, int node, double tokens, double masked)
{
	const ls_node *n = &graph->nodes[node];
	return 2 * training_macs(graph, n, rows_of(graph, n, tokens, masked), 0);
}

double ls_node_macs(const ls_graph *graph, const ls_node *node, int count_padding)
{
	double rows = rows_of(graph, node, graph->tokens_max, graph->masked_max); /* text: of the longest sample */
	return training_macs(graph, node, rows, count_padding);
}

ls_graph_facts ls_graph_describe(const ls_graph *graph)
{
	if (ls_handle_check(graph, LS_GRAPH_KIND) != LS_OK)
		return (ls_graph_facts){ 0 };
	ls_graph_facts facts = { .parameters = graph->params.trainable,
				 .gradient_bytes = graph->params.reachable * sizeof(float) };
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (node->dropped)
			continue;
		facts.layers++;
		facts.flop_per_sample += 2 * ls_node_macs(graph, node, 0);
		facts.padded_flop_per_sample += 2 * ls_node_macs(graph, node, 1);
	}
	return facts;
}

int ls_graph_classes(const ls_graph *graph)
{
	int channels = graph->values[graph->logits].channels;

	for (int i = 0; i < graph->loss_count && channels == 1; i++)
		if (graph->losses[i].inputs[0] == graph->logits && graph->losses[i].type->lone_labels > 0)
			return graph->losses[i].type->lone_labels;
	return channels;
}

int ls_graph_classifies(const ls_graph *graph)
{
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->losses[i].inputs[0] == graph->logits && graph->losses[i].type == &ls_op_cross_entropy)
			return 1;
	return 0;
}

int ls_graph_predicts_tokens(const ls_graph *graph)
{
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->values[graph->losses[i].inputs[0]].domain == LS_MASKED)
			return 1;
	return 0;
}

ls_task ls_graph_task(const ls_graph *graph)
{
	if (ls_graph_classifies(graph))
		return LS_TASK_CLASSIFICATION;
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->losses[i].inputs[0] == graph->logits && graph->losses[i].type == &ls_op_binary_cross_entropy)
			return LS_TASK_MULTI_LABEL;
	return LS_TASK_REGRESSION;
}

const char *ls_graph_head(const ls_graph *graph)
{
	int producer = ls_graph_producer(graph, graph->logits);
	const ls_node *node = producer != LS_NONE ? &graph->nodes[producer] : NULL;
	int is_layer = node && node->type->named && node->type->macs; /* a norm has no row per class */
	return is_layer && node->params[LS_WEIGHT] != LS_NONE ? node->name : NULL;
}
