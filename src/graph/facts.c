/*
 * facts.c - what can be asked about a graph: who makes and reads a value, and what a finished graph costs.
 */
#include "graph/graph.h"

int ls_graph_consumers(const ls_graph *graph, int value)
{
	int count = (value == graph->logits) + (value == graph->token_logits);
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped)
			count += (graph->nodes[i].input == value) + (graph->nodes[i].second == value) +
				 (graph->nodes[i].third == value);
	return count;
}

int ls_graph_producer(const ls_graph *graph, int value)
{
	for (int i = 0; i < graph->node_count; i++)
		if (!graph->nodes[i].dropped && graph->nodes[i].output == value)
			return i;
	return LS_NONE;
}

const char *ls_node_kind_name(ls_node_kind kind)
{
	static const char *const names[LS_NODE_KIND_COUNT] = {
		[LS_NODE_PACK] = "pack",         [LS_NODE_CONV] = "conv",       [LS_NODE_NORM] = "norm",
		[LS_NODE_RELU] = "relu",         [LS_NODE_ADD] = "add",         [LS_NODE_MAX_POOL] = "max_pool",
		[LS_NODE_AVG_POOL] = "avg_pool", [LS_NODE_FLATTEN] = "flatten", [LS_NODE_DROPOUT] = "dropout",
		[LS_NODE_EMBED] = "embed",       [LS_NODE_LINEAR] = "linear",   [LS_NODE_LAYER_NORM] = "layer_norm",
		[LS_NODE_GELU] = "gelu",         [LS_NODE_TANH] = "tanh",       [LS_NODE_ATTENTION] = "attention",
		[LS_NODE_FIRST] = "first",       [LS_NODE_MEAN] = "mean",       [LS_NODE_MASKED] = "pick",
	};
	return names[kind];
}

const char *ls_domain_name(ls_domain domain)
{
	static const char *const names[LS_DOMAINS] = { [LS_SAMPLES] = "a row a sample",
						       [LS_TOKENS] = "a row a token",
						       [LS_MASKED] = "a row a token to be predicted" };
	return names[domain];
}

int ls_graph_vocabulary(const ls_graph *graph)
{
	int smallest = 0; /* of several embeddings: all must know a token */
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		int words = node->kind == LS_NODE_EMBED ? graph->params.rows[node->weight].layout.out : 0;
		if (words > 0 && (smallest == 0 || words < smallest))
			smallest = words;
	}
	return smallest;
}

static int is_shared(const ls_graph *graph, int row)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].is_tied && graph->nodes[i].weight == row)
			return 1;
	return 0;
}

/* Floats of a node's own rows up to `end`, those left out whose place is elsewhere. */
static size_t own_floats(const ls_graph *graph, const ls_node *node, int end)
{
	int rows[LS_NODE_ROWS], count = ls_node_rows(node, rows);
	size_t floats = 0;
	for (int k = 0; k < count && rows[k] != end; k++)
		floats += node->is_tied && rows[k] == node->weight ? 0 : graph->params.rows[rows[k]].count;
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
		if (graph->nodes[i].is_tied && graph->nodes[i].weight != end)
			floats += graph->params.rows[graph->nodes[i].weight].count;
		else if (graph->nodes[i].is_tied)
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

/* What the mathematics needs: scores that backward computes once more are not counted. */
static double text_macs(const ls_graph *graph, const ls_node *node, double tokens, double masked)
{
	const ls_tensor *in = &graph->values[node->input], *out = &graph->values[node->output];
	double rows = in->domain == LS_TOKENS ? tokens : in->domain == LS_MASKED ? masked : 1;

	if (node->kind == LS_NODE_LINEAR)
		return 3 * rows * in->channels * out->channels;
	return node->kind == LS_NODE_ATTENTION ? 6 * tokens * tokens * in->channels : 0;
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
	return 2 * text_macs(graph, &graph->nodes[node], tokens, masked);
}

double ls_node_macs(const ls_graph *graph, const ls_node *node, int count_padding)
{
	if (graph->tokens_max > 0) /* of the longest sample */
		return text_macs(graph, node, graph->tokens_max, graph->masked_max);
	if (node->kind != LS_NODE_CONV)
		return 0;
	int producer = ls_graph_producer(graph, node->input);
	int first = producer == LS_NONE || graph->nodes[producer].kind == LS_NODE_PACK;
	return (first ? 2 : 3) * ls_conv_macs(&node->conv, count_padding);
}

ls_graph_facts ls_graph_describe(const ls_graph *graph)
{
	ls_graph_facts facts = { .parameters = graph->params.trainable,
				 .gradient_bytes = graph->params.live * sizeof(float) };
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

const char *ls_graph_head(const ls_graph *graph)
{
	int producer = ls_graph_producer(graph, graph->logits);
	const ls_node *node = producer != LS_NONE ? &graph->nodes[producer] : NULL;
	int is_layer = node && (node->kind == LS_NODE_CONV || node->kind == LS_NODE_LINEAR);
	return is_layer && node->weight != LS_NONE ? node->name : NULL;
}
