/*
 * build.c - add an operator: mistakes are recorded, inputs checked, and the value, the parameters and the
 * node added that the row's shape rule asks for.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handles.h"
#include "graph/graph.h"
#include "ops/shape.h"

static const ls_value invalid = { LS_NONE };

ls_value ls_graph_mistake(ls_graph *graph, ls_status status, const char *format, ...)
{
	va_list list;
	if (graph->status == LS_OK) {
		graph->status = status;
		va_start(list, format);
		vsnprintf(graph->message, sizeof(graph->message), format, list);
		va_end(list);
	}
	return invalid;
}

int ls_graph_usable(ls_graph *graph, ls_value x)
{
	if (ls_handle_check(graph, LS_GRAPH_KIND) != LS_OK || graph->status != LS_OK)
		return 0;
	if (graph->finished)
		ls_graph_mistake(graph, LS_EINVALID, "the graph is finished; no layer can be added");
	else if (x.id < 0 || x.id >= graph->value_count)
		ls_graph_mistake(graph, LS_EINVALID, "a layer was given a value that is not of this graph");
	return graph->status == LS_OK;
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

ls_value ls_graph_add_value(ls_graph *graph, ls_tensor t)
{
	if (ls_too_many_floats(ls_padded(t.channels), t.height, t.width))
		return ls_graph_mistake(graph, LS_EINVALID,
					"a value of %d channels, %d x %d is too large: at most %d floats per sample",
					t.channels, t.height, t.width, LS_FLOATS_MOST);
	if (!grow((void **)&graph->values, graph->value_count, &graph->value_capacity, sizeof(ls_tensor)))
		return ls_graph_mistake(graph, LS_EMEMORY, "no memory for the graph's values");
	graph->values[graph->value_count] = t;
	return (ls_value){ graph->value_count++ };
}

/* A row of the parameter table; returns its index. */
static int add_param(ls_graph *graph, const ls_param *row)
{
	int capacity = (int)graph->params.capacity, count = (int)graph->params.count;

	for (int i = 0; i < count; i++)
		if (strcmp(graph->params.rows[i].name, row->name) == 0)
			ls_graph_mistake(graph, LS_EINVALID, "two layers are named '%.*s'; names must differ",
					 (int)(strrchr(row->name, '.') - row->name), row->name);
	if (!grow((void **)&graph->params.rows, count, &capacity, sizeof(ls_param)))
		ls_graph_mistake(graph, LS_EMEMORY, "no memory for the parameter table");
	if (graph->status != LS_OK)
		return LS_NONE;
	graph->params.capacity = (size_t)capacity;
	graph->params.rows[graph->params.count++] = *row;
	return count;
}

static ls_value add_loss(ls_graph *graph, ls_node *loss)
{
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->losses[i].inputs[0] == loss->inputs[0])
			return ls_graph_mistake(graph, LS_EINVALID, "%s: its input has a loss already", loss->name);
	if (graph->loss_count == LS_LOSSES_MAX)
		return ls_graph_mistake(graph, LS_EINVALID, "%s: a graph has at most %d losses", loss->name,
					LS_LOSSES_MAX);
	loss->output = LS_NONE;
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++)
		loss->params[slot] = LS_NONE;
	graph->losses[graph->loss_count++] = *loss;
	return invalid;
}

/* A node with the parameters and the output that its shape rule asked for. */
static ls_value add_node(ls_graph *graph, const ls_shape *s, const ls_value *inputs)
{
	ls_node node = { .type = s->type,
			 .name = ls_arena_copy(&graph->arena, s->name ? s->name : s->type->name),
			 .input_count = s->type->input_count,
			 .attributes = s->attributes,
			 .borrowed = LS_NONE,
			 .moments_to = LS_NONE };
	if (!node.name || !grow((void **)&graph->nodes, graph->node_count, &graph->node_capacity, sizeof(ls_node)))
		return ls_graph_mistake(graph, LS_EMEMORY, "no memory for the graph's nodes");
	for (int k = 0; k < LS_INPUTS_MAX; k++)
		node.inputs[k] = k < node.input_count ? inputs[k].id : LS_NONE;
	if (s->type->is_loss)
		return add_loss(graph, &node);
	ls_value out = ls_graph_add_value(graph, s->out);
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++)
		node.params[slot] = s->params[slot].name ? add_param(graph, &s->params[slot]) : LS_NONE;
	if (graph->status != LS_OK)
		return invalid;
	node.output = out.id;
	if (s->draws)
		node.stream = graph->streams++;
	graph->coupled |= s->type->couples;
	graph->nodes[graph->node_count++] = node;
	return out;
}

/* The input as an operator can read it: bare where it takes that, else in panels, which are made once. */
static ls_value readable(ls_graph *graph, const ls_op_type *type, ls_value x)
{
	const ls_tensor *t = &graph->values[x.id];

	if (!t->is_input || (type->takes_input && type->takes_input(t)))
		return x;
	if (t->domain != LS_SAMPLES)
		return ls_graph_mistake(graph, LS_EINVALID,
					"%s cannot work on the tokens of ls_text_input(); use ls_embedding() first",
					type->name);
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].type == &ls_op_pack)
			return (ls_value){ graph->nodes[i].output };
	return ls_graph_add(graph, &ls_op_pack, NULL, &x, NULL);
}

static ls_status check_kind(const ls_graph *graph, const ls_op_type *type, const char *name)
{
	if (type->maps && graph->tokens_max > 0)
		return ls_fail(LS_EINVALID, "%s works on images, and this graph's input is text", type->name);
	if (type->named && !name)
		return ls_fail(LS_EINVALID, "%s needs a name", type->name);
	return LS_OK;
}

static ls_status apply_rule(ls_graph *graph, ls_shape *s, const ls_value *inputs, const void *attributes)
{
	if (s->type->attribute_bytes > 0) {
		s->attributes = ls_arena_alloc(&graph->arena, s->type->attribute_bytes);
		if (!s->attributes)
			return ls_fail(LS_EMEMORY, "no memory for the attributes of a layer");
		memcpy(s->attributes, attributes, s->type->attribute_bytes);
	}
	for (int k = 0; k < s->type->input_count; k++)
		s->in[k] = &graph->values[inputs[k].id];
	return s->type->shape(s);
}

/* `borrowed` is the row of another node's weight that serves this one, or LS_NONE. */
static ls_value add_operator(ls_graph *graph, const ls_op_type *type, const char *name, const ls_value *inputs,
			     const void *attributes, int borrowed)
{
	ls_value readables[LS_INPUTS_MAX];

	for (int k = 0; k < type->input_count; k++)
		if (!ls_graph_usable(graph, inputs[k]))
			return invalid;
	ls_shape s = { .type = type,
		       .arena = &graph->arena,
		       .name = name,
		       .tokens_max = graph->tokens_max,
		       .masked_max = graph->masked_max,
		       .borrowed = borrowed != LS_NONE ? &graph->params.rows[borrowed] : NULL };
	ls_status status = check_kind(graph, type, name);
	for (int k = 0; k < type->input_count && status == LS_OK; k++) {
		readables[k] = readable(graph, type, inputs[k]);
		if (graph->status != LS_OK)
			return invalid;
	}
	if (status == LS_OK)
		status = apply_rule(graph, &s, readables, attributes);
	if (status != LS_OK)
		return ls_graph_mistake(graph, status, "%s", ls_last_error());
	return s.is_identity ? readables[0] : add_node(graph, &s, readables);
}

ls_value ls_graph_add(ls_graph *graph, const ls_op_type *type, const char *name, const ls_value *inputs,
		      const void *attributes)
{
	return add_operator(graph, type, name, inputs, attributes, LS_NONE);
}

ls_value ls_graph_add_borrower(ls_graph *graph, const ls_op_type *type, const char *name, ls_value x,
			       const void *attributes, int owner)
{
	int row = graph->nodes[owner].params[LS_WEIGHT];
	ls_value out = add_operator(graph, type, name, &x, attributes, row);

	if (out.id == LS_NONE)
		return out;
	graph->nodes[graph->node_count - 1].borrowed = row;
	graph->nodes[owner].lends = 1;
	return out;
}
