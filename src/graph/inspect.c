/*
 * inspect.c - what a finished graph looks like from outside (lockstep/inspect.h).
 */
#include <lockstep/inspect.h>
#include <string.h>

#include "base/handles.h"
#include "graph/graph.h"
#include "ops/custom.h"

_Static_assert((int)LS_NODE_INPUTS == (int)LS_INPUTS_MAX && (int)LS_NODE_PARAMS == (int)LS_PARAMS_MAX,
	       "as many as nodes have");

/* What fuse.c has put behind or before a node's own work. */
static const char *fused_into(const ls_node *node)
{
	static const char *const names[2][4] = { { NULL, "relu", "gelu", "gelu" },
						 { "add", "add, relu", "add, gelu", "add, gelu" } };
	return names[node->input_count > node->type->input_count][node->activation];
}

static void list_params(const ls_node *node, ls_graph_node *out)
{
	if (node->borrowed != LS_NONE)
		out->param[out->params++] = node->borrowed;
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++)
		if (node->params[slot] != LS_NONE)
			out->param[out->params++] = node->params[slot];
}

static int is_finished(const ls_graph *graph)
{
	return ls_handle_check(graph, LS_GRAPH_KIND) == LS_OK && graph->finished;
}

int ls_graph_node_at(const ls_graph *graph, int i, ls_graph_node *out)
{
	if (!is_finished(graph) || i < 0 || i >= graph->node_count + graph->loss_count)
		return 0;
	int is_loss = i >= graph->node_count;
	const ls_node *node = is_loss ? &graph->losses[i - graph->node_count] : &graph->nodes[i];

	*out = (ls_graph_node){ .operator_name = node->type->name,
				.layer = node->name,
				.is_loss = is_loss,
				.inputs = node->input_count,
				.fused = is_loss ? NULL : fused_into(node),
				.flop = is_loss ? 0 : 2 * ls_node_macs(graph, node, 0) };
	for (int k = 0; k < node->input_count; k++)
		out->input[k] = ls_graph_producer(graph, node->inputs[k]);
	if (!is_loss) {
		out->output = ls_value_shape_of(&graph->values[node->output]);
		list_params(node, out);
	}
	return 1;
}

int ls_graph_param_at(const ls_graph *graph, int i, ls_graph_param *out)
{
	if (!is_finished(graph) || i < 0 || (size_t)i >= graph->params.count)
		return 0;
	const ls_param *param = &graph->params.rows[i];
	*out = (ls_graph_param){ .name = param->name, .is_trained = ls_param_is_trained(param), .rank = param->rank };
	memcpy(out->shape, param->shape, sizeof(out->shape));
	return 1;
}

ls_value_shape ls_graph_input_shape(const ls_graph *graph)
{
	if (ls_handle_check(graph, LS_GRAPH_KIND) != LS_OK)
		return (ls_value_shape){ 0 };
	return graph->input == LS_NONE ? (ls_value_shape){ 0 } : ls_value_shape_of(&graph->values[graph->input]);
}
