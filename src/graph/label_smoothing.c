/*
 * label_smoothing.c - targets that are not quite certain, for a graph whose loss was added by ls_graph_finish().
 */
#include <string.h>

#include "base/status.h"
#include "graph/graph.h"

/* A classification of whole samples, or the next token; what stood at masked positions is learned as it is. */
static int is_classification(const ls_graph *graph, const ls_node *node)
{
	return !strcmp(node->type->name, "cross_entropy") &&
	       (graph->values[node->inputs[0]].domain == LS_SAMPLES || graph->predicts_next);
}

ls_status ls_graph_smooth_labels(ls_graph *graph, double smoothing)
{
	for (int i = 0; i < graph->loss_count; i++) {
		ls_node *node = &graph->losses[i];
		if (!is_classification(graph, node))
			continue;
		ls_cross_entropy_options *o = ls_arena_alloc(&graph->arena, sizeof(*o));
		if (!o)
			return ls_fail(LS_EMEMORY, "no memory for the options of a loss");
		memcpy(o, node->attributes, sizeof(*o));
		o->label_smoothing = (float)smoothing;
		node->attributes = o;
	}
	return LS_OK;
}
