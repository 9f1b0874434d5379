/*
 * running.c - what batch norms need of a micro-batch, and their running statistics after a step.
 */
#include "graph/graph.h"

/* As ls_op_is_frozen_norm(). */
static int is_frozen(const ls_graph *graph, const ls_node *norm)
{
	const ls_param *rows = graph->params.rows;
	return rows[norm->params[LS_WEIGHT]].is_frozen && rows[norm->params[LS_BIAS]].is_frozen;
}

const char *ls_graph_single_norm(const ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (node->type != &ls_op_batch_norm || is_frozen(graph, node))
			continue;
		const ls_tensor *maps = &graph->values[node->inputs[0]];
		if (maps->height == 1 && maps->width == 1)
			return node->name;
	}
	return NULL;
}

void ls_graph_update_running(const ls_graph *graph, const float *sums, size_t begin, size_t end, double samples,
			     float *buffers)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (node->type != &ls_op_batch_norm || is_frozen(graph, node))
			continue;
		float momentum = ((const ls_batch_norm_options *)node->attributes)->momentum;
		for (int slot = 2; slot < 4; slot++) { /* running mean, then variance */
			const ls_param *param = &graph->params.rows[node->params[slot]];
			size_t first = param->offset > begin ? param->offset : begin;
			size_t last = param->offset + param->count < end ? param->offset + param->count : end;
			for (size_t j = first; j < last; j++)
				buffers[j] += momentum * ((float)(sums[j - begin] / samples) - buffers[j]);
		}
	}
}
