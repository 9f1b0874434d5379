/*
 * freeze.c - parameters that keep their values, and what then has a gradient.
 *
 * A value needs a gradient where a trained parameter lies below it: backward begins at the losses and ends at the
 * lowest of these. With nothing frozen that is every value but the input and what is made of it without parameters.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "graph/graph.h"

enum { PATTERN_MAX = 256 };

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static int has_gradient(const ls_graph *graph, int row)
{
	return row != LS_NONE && ls_param_has_gradient(&graph->params.rows[row]);
}

/* Nodes are in forward order, so what a node reads is marked before. */
void ls_graph_mark_gradients(ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		int needs = has_gradient(graph, node->borrowed);
		for (int slot = 0; slot < LS_PARAMS_MAX; slot++)
			needs |= has_gradient(graph, node->params[slot]);
		for (int k = 0; k < node->input_count; k++)
			needs |= graph->values[node->inputs[k]].needs_gradient;
		graph->values[node->output].needs_gradient = needs && node->type->backward;
	}
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* The parameters that a pattern matches, frozen from now on if they are to be. */
static size_t match(ls_graph *graph, const char *pattern, int freeze)
{
	size_t count = 0;
	for (size_t i = 0; i < graph->params.count; i++) {
		ls_param *param = &graph->params.rows[i];
		if (!ls_param_is_trained(param) || fnmatch(pattern, param->name, 0) != 0)
			continue;
		param->is_frozen |= freeze;
		count++;
	}
	return count;
}

/* Names and what they begin with, up to a dot: "layer1", "layer1.0", ..., "layer1.0.conv1.weight". */
typedef struct stems {
	ls_arena arena;
	const char **text;
	size_t count;
} stems;

static void add_stems(stems *list, const char *name)
{
	for (size_t end = 0; name[end] != '\0';) {
		end += strcspn(name + end + 1, ".") + 1;
		char *stem = ls_arena_format(&list->arena, "%.*s", (int)end, name);
		if (stem)
			list->text[list->count++] = stem;
	}
}

/* The nearest such stem to a pattern, as a pattern; "": none is near. */
static void suggest(const ls_graph *graph, const char *pattern, char *out, size_t size)
{
	size_t room = 0;
	stems list = { .arena = LS_ARENA_INIT };
	char typed[PATTERN_MAX];

	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(pattern, "*?["), pattern);
	size_t length = strlen(typed);
	if (length > 0 && typed[length - 1] == '.')
		typed[length - 1] = '\0';
	for (size_t i = 0; i < graph->params.count; i++)
		for (const char *c = graph->params.rows[i].name; *c; c++)
			room += *c == '.' || c[1] == '\0';
	list.text = ls_arena_alloc(&list.arena, (room + 1) * sizeof(*list.text));
	for (size_t i = 0; list.text && i < graph->params.count; i++)
		if (ls_param_is_trained(&graph->params.rows[i]))
			add_stems(&list, graph->params.rows[i].name);
	const char *nearest = ls_name_nearest(typed, list.text, list.count);
	snprintf(out, size, "%s%s", nearest ? nearest : "", nearest ? "*" : "");
	ls_arena_release(&list.arena);
}

/* Most mean a layer, or all below a name: "layer1" is no parameter, "layer1.*" are some. */
static ls_status matches_nothing(ls_graph *graph, const char *pattern)
{
	char meant[PATTERN_MAX + 3] = "";

	snprintf(meant, sizeof(meant), "%s.*", pattern);
	if (match(graph, meant, 0) == 0)
		snprintf(meant, sizeof(meant), "%s*", pattern);
	if (match(graph, meant, 0) == 0)
		suggest(graph, pattern, meant, sizeof(meant));
	return ls_fail(LS_EINVALID, "options.freeze: '%s' matches no parameter of the model%s%s%s", pattern,
		       *meant ? "; did you mean '" : "; its first is ", *meant ? meant : graph->params.rows[0].name,
		       *meant ? "'?" : "");
}

static ls_status freeze_pattern(ls_graph *graph, const char *begin, size_t length)
{
	char pattern[PATTERN_MAX];

	if (length == 0)
		return ls_fail(LS_EINVALID, "options.freeze has an empty pattern; write 'conv1.*,layer1.*'");
	if (length >= sizeof(pattern))
		return ls_fail(LS_EINVALID, "options.freeze: the pattern '%.40s...' is longer than %d characters",
			       begin, PATTERN_MAX - 1);
	snprintf(pattern, sizeof(pattern), "%.*s", (int)length, begin);
	return match(graph, pattern, 1) > 0 ? LS_OK : matches_nothing(graph, pattern);
}

static ls_status freeze_all(ls_graph *graph, const char *patterns)
{
	for (const char *p = patterns; p;) {
		size_t length = strcspn(p, ",");
		LS_TRY(freeze_pattern(graph, p, length));
		p = p[length] == ',' ? p + length + 1 : NULL;
	}
	for (size_t i = 0; i < graph->params.count; i++)
		if (ls_param_has_gradient(&graph->params.rows[i]))
			return LS_OK;
	return ls_fail(LS_EINVALID, "options.freeze '%s' matches every parameter: there is nothing left to train",
		       patterns);
}

static int is_adapter(const ls_param *param)
{
	return strstr(param->name, ".lora_") != NULL;
}

/* Nothing is frozen, but in a model with adapters (LoRA) all that is none. */
static void thaw(ls_graph *graph)
{
	int has_adapters = 0;

	for (size_t i = 0; i < graph->params.count; i++)
		has_adapters |= is_adapter(&graph->params.rows[i]);
	for (size_t i = 0; i < graph->params.count; i++)
		graph->params.rows[i].is_frozen = has_adapters && !is_adapter(&graph->params.rows[i]);
}

ls_status ls_graph_freeze(ls_graph *graph, const char *patterns)
{
	thaw(graph);
	ls_status status = patterns ? freeze_all(graph, patterns) : LS_OK;
	if (status != LS_OK)
		thaw(graph);
	ls_graph_mark_gradients(graph);
	ls_params_lay_out(&graph->params, 0);
	return status;
}
