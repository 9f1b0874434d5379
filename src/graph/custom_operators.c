/*
 * custom_operators.c - custom operators and losses become nodes like all others. The graph keeps copies of what
 * describes them; nothing is registered anywhere else.
 */
#include <lockstep/operator.h>
#include <string.h>

#include "graph/graph.h"
#include "ops/custom.h"

static const ls_value invalid = { LS_NONE };

static void *keep(ls_graph *graph, const void *from, size_t bytes)
{
	void *to = ls_arena_alloc(&graph->arena, bytes > 0 ? bytes : 1);
	if (to && from)
		memcpy(to, from, bytes);
	return to;
}

/* The options of a layer, which may be none: NULL and 0 bytes. */
static ls_status keep_options(ls_graph *graph, const char *name, const void *options, size_t bytes, const void **out)
{
	*out = NULL;
	if (bytes > 0 && !options)
		return ls_fail(LS_EINVALID, "%s has options of %zu bytes, and NULL was given", name, bytes);
	if (bytes == 0)
		return LS_OK;
	*out = keep(graph, options, bytes);
	return *out ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the options of %s", name);
}

static ls_value add(ls_graph *graph, ls_op_type type, const char *layer, const ls_value *inputs,
		    const ls_custom_attributes *custom)
{
	ls_op_type *kept = keep(graph, &type, sizeof(type));

	if (!kept || !type.name)
		return ls_graph_mistake(graph, LS_EMEMORY, "no memory for an operator");
	return ls_graph_add(graph, kept, layer, inputs, custom);
}

ls_value ls_graph_operator(ls_graph *graph, const ls_operator *given, const char *name, const ls_value *inputs,
			   const void *options)
{
	ls_custom_attributes custom = { 0 };
	ls_operator row;

	if (ls_graph_check(graph) != LS_OK)
		return invalid;
	ls_status status = ls_custom_read_operator(&row, given);
	if (status == LS_OK)
		status = keep_options(graph, row.name, options, row.options_bytes, &custom.options);
	if (status != LS_OK)
		return ls_graph_mistake(graph, status, "%s", ls_last_error());
	row.name = ls_arena_copy(&graph->arena, row.name);
	custom.row = keep(graph, &row, sizeof(row));
	if (!custom.row)
		return ls_graph_mistake(graph, LS_EMEMORY, "no memory for an operator");
	return add(graph, ls_custom_operator_type(custom.row), name, inputs, &custom);
}

void ls_graph_loss(ls_graph *graph, const ls_loss *given, ls_value x, const void *options)
{
	ls_custom_attributes custom = { 0 };
	ls_loss row;

	if (ls_graph_check(graph) != LS_OK)
		return;
	ls_status status = ls_custom_read_loss(&row, given);
	if (status == LS_OK)
		status = keep_options(graph, row.name, options, row.options_bytes, &custom.options);
	if (status != LS_OK) {
		ls_graph_mistake(graph, status, "%s", ls_last_error());
		return;
	}
	row.name = ls_arena_copy(&graph->arena, row.name);
	custom.loss = keep(graph, &row, sizeof(row));
	if (custom.loss)
		add(graph, ls_custom_loss_type(custom.loss), NULL, &x, &custom);
	else
		ls_graph_mistake(graph, LS_EMEMORY, "no memory for a loss");
}
