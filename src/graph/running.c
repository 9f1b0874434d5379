/*
 * running.c - running statistics after a step.
 */
#include "graph/graph.h"

void ls_graph_update_running(const ls_graph *graph, const double *sums, double samples, float *buffers)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (node->kind != LS_NODE_NORM)
			continue;
		const int rows[2] = { node->running_mean, node->running_var };
		for (int k = 0; k < 2; k++) {
			const ls_param *param = &graph->params.rows[rows[k]];
			for (size_t j = param->offset; j < param->offset + param->count; j++)
				buffers[j] += node->momentum * ((float)(sums[j] / samples) - buffers[j]);
		}
	}
}
