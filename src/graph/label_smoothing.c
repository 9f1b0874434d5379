/*
 * label_smoothing.c - targets that are not quite certain and classes that count more than others, for a graph whose
 * loss was added by ls_graph_finish().
 */
#include <string.h>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/task.h"

/* A classification of whole samples, or the next token; what stood at masked positions is learned as it is. */
static int is_classification(const ls_graph *graph, const ls_node *node)
{
	return !strcmp(node->type->name, "cross_entropy") &&
	       (graph->values[node->inputs[0]].domain == LS_SAMPLES || graph->predicts_next);
}

/* A copy of the loss's attributes, which may be changed. */
static ls_status own_attributes(ls_graph *graph, ls_node *node, ls_cross_entropy_options **out)
{
	ls_cross_entropy_options *o = ls_arena_alloc(&graph->arena, sizeof(*o));

	if (!o)
		return ls_fail(LS_EMEMORY, "no memory for the options of a loss");
	memcpy(o, node->attributes, sizeof(*o));
	node->attributes = *out = o;
	return LS_OK;
}

ls_status ls_graph_smooth_labels(ls_graph *graph, double smoothing)
{
	for (int i = 0; i < graph->loss_count; i++) {
		ls_cross_entropy_options *o = NULL;
		if (!is_classification(graph, &graph->losses[i]))
			continue;
		LS_TRY(own_attributes(graph, &graph->losses[i], &o));
		o->label_smoothing = (float)smoothing;
	}
	return LS_OK;
}

ls_status ls_graph_weigh_classes(ls_graph *graph, const float *weight)
{
	size_t bytes = (size_t)ls_graph_outputs(graph) * sizeof(*weight);

	for (int i = 0; i < graph->loss_count; i++) {
		ls_cross_entropy_options *o = NULL;
		if (!is_classification(graph, &graph->losses[i]) || graph->losses[i].inputs[0] != graph->logits)
			continue;
		LS_TRY(own_attributes(graph, &graph->losses[i], &o));
		float *copy = ls_arena_alloc(&graph->arena, bytes);
		if (!copy)
			return ls_fail(LS_EMEMORY, "no memory for the weights of classes");
		memcpy(copy, weight, bytes);
		o->class_weights = copy;
	}
	return LS_OK;
}
