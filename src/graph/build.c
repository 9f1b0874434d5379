/*
 * build.c - what every call of the builder does: note mistakes, add values, nodes and rows of the parameter table.
 */
#include "graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "params/panel.h"

ls_value ls_build_mistake(ls_graph *graph, ls_status status, const char *format, ...)
{
	va_list list;
	if (graph->status == LS_OK) {
		graph->status = status;
		va_start(list, format);
		vsnprintf(graph->message, sizeof(graph->message), format, list);
		va_end(list);
	}
	return ls_build_invalid;
}

/* Make room for one more element; the array is NULL-safe. */
static int grow(void **array, int count, int *capacity, size_t element)
{
	if (count < *capacity)
		return 1;
	int wanted = *capacity == 0 ? 32 : *capacity * 2;
	void *bigger = realloc(*array, (size_t)wanted * element);
	if (!bigger)
		return 0;
	*array = bigger;
	*capacity = wanted;
	return 1;
}

int ls_build_usable(ls_graph *graph, ls_value x)
{
	if (graph->status != LS_OK)
		return 0;
	if (graph->finished)
		ls_build_mistake(graph, LS_EINVALID, "the graph is finished; no layer can be added");
	else if (x.id < 0 || x.id >= graph->value_count)
		ls_build_mistake(graph, LS_EINVALID, "a layer was given a value that is not of this graph");
	return graph->status == LS_OK;
}

int64_t ls_build_padded(int channels)
{
	int panel = ls_panel_width(channels);
	return ((int64_t)channels + panel - 1) / panel * panel;
}

/* a * b * c is more than LS_FLOATS_MOST, or more than can be told. */
int ls_build_too_many(int64_t a, int64_t b, int64_t c)
{
	int64_t ab, abc;
	return __builtin_mul_overflow(a, b, &ab) || __builtin_mul_overflow(ab, c, &abc) || abc > LS_FLOATS_MOST;
}

ls_value ls_build_value(ls_graph *graph, int channels, int height, int width)
{
	if (ls_build_too_many(ls_build_padded(channels), height, width))
		return ls_build_mistake(graph, LS_EINVALID,
					"a value of %d channels, %d x %d is too large: at most %d floats a sample",
					channels, height, width, LS_FLOATS_MOST);
	if (!grow((void **)&graph->values, graph->value_count, &graph->value_capacity, sizeof(ls_tensor)))
		return ls_build_mistake(graph, LS_EMEMORY, "no memory for the graph's values");
	graph->values[graph->value_count] = (ls_tensor){ .channels = channels,
							 .height = height,
							 .width = width,
							 .panel = ls_panel_width(channels),
							 .blocks = ls_panel_blocks(channels) };
	return (ls_value){ graph->value_count++ };
}

/* A node with one input and a fresh output; NULL after a mistake. */
ls_node *ls_build_node(ls_graph *graph, ls_node_kind kind, const char *name, ls_value input, ls_value output)
{
	if (graph->status != LS_OK)
		return NULL;
	if (!grow((void **)&graph->nodes, graph->node_count, &graph->node_capacity, sizeof(ls_node))) {
		ls_build_mistake(graph, LS_EMEMORY, "no memory for the graph's nodes");
		return NULL;
	}
	ls_node *node = &graph->nodes[graph->node_count++];
	*node = (ls_node){ .kind = kind,
			   .input = input.id,
			   .second = LS_NONE,
			   .third = LS_NONE,
			   .segments = LS_NONE,
			   .tied = LS_NONE,
			   .output = output.id,
			   .weight = LS_NONE,
			   .bias = LS_NONE,
			   .running_mean = LS_NONE,
			   .running_var = LS_NONE,
			   .norm_consumer = LS_NONE };
	node->name = ls_arena_copy(&graph->arena, name ? name : ls_node_kind_name(kind));
	return node;
}

/* A row of the parameter table named "<layer>.<suffix>"; returns its index. */
int ls_build_param(ls_graph *graph, const char *layer, const char *suffix, ls_param row)
{
	int capacity = (int)graph->params.capacity, count = (int)graph->params.count;
	const char *name = ls_arena_format(&graph->arena, "%s.%s", layer, suffix);

	for (int i = 0; name && i < count; i++)
		if (strcmp(graph->params.rows[i].name, name) == 0)
			ls_build_mistake(graph, LS_EINVALID, "two layers are named '%s'; names must differ", layer);
	if (!name || !grow((void **)&graph->params.rows, count, &capacity, sizeof(ls_param)))
		ls_build_mistake(graph, LS_EMEMORY, "no memory for the parameter table");
	if (graph->status != LS_OK)
		return LS_NONE;
	graph->params.capacity = (size_t)capacity;
	row.name = name;
	graph->params.rows[graph->params.count++] = row;
	return count;
}

ls_param ls_build_vector(int length, ls_param_role role, ls_param_init init, int fan_in)
{
	ls_param row = { .role = role, .init = init, .fan_in = fan_in, .rank = 1, .shape = { length } };
	row.layout = (ls_weight_layout){
		.out = length, .in = 1, .taps = 1, .out_panel = ls_panel_width(length), .in_panel = 1, .live_taps = 1
	};
	return row;
}

int ls_build_usable_image(ls_graph *graph, ls_value x, const char *what)
{
	if (!ls_build_usable(graph, x))
		return 0;
	if (graph->tokens_max > 0)
		ls_build_mistake(graph, LS_EINVALID, "%s works on images, and this graph's input is text", what);
	return graph->status == LS_OK;
}

ls_value ls_build_like(ls_graph *graph, ls_value x)
{
	ls_tensor in = graph->values[x.id];
	ls_value out = ls_build_value(graph, in.channels, in.height, in.width);
	if (out.id != LS_NONE)
		graph->values[out.id].domain = in.domain;
	return out;
}
