/*
 * graph_text.c - the builder's layers of text.
 */
#include <lockstep/text.h>

#include "graph/build.h"
#include "params/panel.h"

ls_value ls_text_input(ls_graph *graph, int longest, int masked)
{
	if (graph->status != LS_OK)
		return ls_build_invalid;
	if (graph->input != LS_NONE)
		return ls_build_mistake(graph, LS_EINVALID, "a graph has one input; this is its second");
	if (longest < 1 || longest > LS_TOKENS_MAX || masked < 0 || masked > longest)
		return ls_build_mistake(graph, LS_EINVALID,
					"samples of %d tokens, %d of them to be predicted: not possible", longest,
					masked);
	ls_value value = ls_build_value(graph, 1, longest, 1);
	if (value.id == LS_NONE)
		return value;
	graph->values[value.id].is_input = 1;
	graph->values[value.id].domain = LS_TOKENS;
	graph->input = value.id;
	graph->tokens_max = longest;
	graph->masked_max = masked;
	return value;
}

/* Usable, and not the bare tokens. */
static int usable_rows(ls_graph *graph, ls_value x, const char *what)
{
	if (!ls_build_usable(graph, x))
		return 0;
	if (graph->tokens_max == 0)
		ls_build_mistake(graph, LS_EINVALID, "%s works on text, and this graph's input is images", what);
	else if (graph->values[x.id].is_input)
		ls_build_mistake(graph, LS_EINVALID, "%s cannot work on the input; use ls_embedding() first", what);
	return graph->status == LS_OK;
}

static int usable_tokens(ls_graph *graph, ls_value x, const char *what)
{
	if (!usable_rows(graph, x, what))
		return 0;
	if (graph->values[x.id].domain != LS_TOKENS)
		ls_build_mistake(graph, LS_EINVALID, "%s needs a row a token", what);
	return graph->status == LS_OK;
}

/* Another width, the same rows. */
static ls_value rows_value(ls_graph *graph, ls_value x, int channels)
{
	ls_tensor in = graph->values[x.id];
	ls_value out = ls_build_value(graph, channels, in.height, in.width);
	if (out.id != LS_NONE)
		graph->values[out.id].domain = in.domain;
	return out;
}

/* ---- embedding --------------------------------------------------------------------------------------------------- */

static int add_table(ls_graph *graph, const char *name, int rows, int width)
{
	ls_param row = {
		.role = LS_ROLE_WEIGHT, .init = LS_INIT_NORMAL, .fan_in = width, .rank = 2, .shape = { rows, width }
	};
	row.layout = (ls_weight_layout){ .out = rows, .in = width, .taps = 1, .out_panel = 1, .live_taps = 1 };
	row.layout.in_panel = (int)ls_build_padded(width);
	return ls_build_param(graph, name, "weight", row);
}

ls_value ls_embedding(ls_graph *graph, ls_value x, ls_embedding_options o)
{
	if (!ls_build_usable(graph, x))
		return ls_build_invalid;
	if (!graph->values[x.id].is_input || graph->tokens_max == 0)
		return ls_build_mistake(graph, LS_EINVALID, "embedding: its input must be ls_text_input()'s");
	if (!o.words || !o.positions || o.vocabulary < 1 || o.width < 1)
		return ls_build_mistake(graph, LS_EINVALID,
					"embedding needs names for words and positions, a vocabulary and a width");
	if (o.longest < graph->tokens_max)
		return ls_build_mistake(
			graph, LS_EINVALID,
			"the model has positions for %d tokens, and the data has samples of %d: use a shorter "
			"options.seq_len or a model with more positions",
			o.longest, graph->tokens_max);
	if (ls_build_too_many(o.vocabulary, ls_build_padded(o.width), 1))
		return ls_build_mistake(graph, LS_EINVALID,
					"embedding: %d words, %d wide, are too large: at most %d floats", o.vocabulary,
					o.width, LS_FLOATS_MOST);
	ls_value out = rows_value(graph, x, o.width);
	ls_node *node = ls_build_node(graph, LS_NODE_EMBED, o.words, x, out);
	if (!node)
		return ls_build_invalid;
	node->weight = add_table(graph, o.words, o.vocabulary, o.width);
	node->bias = add_table(graph, o.positions, o.longest, o.width);
	if (o.segments)
		node->segments = add_table(graph, o.segments, 2, o.width);
	return graph->status == LS_OK ? out : ls_build_invalid;
}

/* ---- linear ------------------------------------------------------------------------------------------------------ */

static ls_param linear_param(int in, int out, ls_weight_init init)
{
	ls_param row = {
		.role = LS_ROLE_WEIGHT, .init = ls_build_init(init), .fan_in = in, .rank = 2, .shape = { out, in }
	};
	row.layout = (ls_weight_layout){ .out = out,
					 .in = in,
					 .taps = 1,
					 .out_panel = ls_panel_width(out),
					 .in_panel = ls_panel_width(in),
					 .live_taps = 1 };
	return row;
}

ls_value ls_build_linear_rows(ls_graph *graph, ls_value x, const char *name, ls_linear_options o)
{
	if (!usable_rows(graph, x, "linear"))
		return ls_build_invalid;
	int in = graph->values[x.id].channels;
	if (ls_build_too_many(ls_build_padded(in), ls_build_padded(o.out_features), 1))
		return ls_build_mistake(graph, LS_EINVALID, "'%s': weights of %d x %d are too large: at most %d floats",
					name, o.out_features, in, LS_FLOATS_MOST);
	ls_value out = rows_value(graph, x, o.out_features);
	ls_node *node = ls_build_node(graph, LS_NODE_LINEAR, name, x, out);
	if (!node)
		return ls_build_invalid;
	node->weight = ls_build_param(graph, name, "weight", linear_param(in, o.out_features, o.init));
	if (o.bias) {
		ls_param_init init = o.init == LS_WEIGHTS_UNIFORM ? LS_INIT_UNIFORM_FAN_IN : LS_INIT_ZERO;
		node->bias =
			ls_build_param(graph, name, "bias", ls_build_vector(o.out_features, LS_ROLE_BIAS, init, in));
	}
	return graph->status == LS_OK ? out : ls_build_invalid;
}

ls_value ls_tied_linear(ls_graph *graph, ls_value x, ls_value embedding, const char *name)
{
	if (!usable_rows(graph, x, "tied_linear") || !ls_build_usable(graph, embedding))
		return ls_build_invalid;
	int producer = ls_graph_producer(graph, embedding.id), in = graph->values[x.id].channels;
	if (producer == LS_NONE || graph->nodes[producer].kind != LS_NODE_EMBED || !name)
		return ls_build_mistake(graph, LS_EINVALID,
					"tied_linear needs a name and the value of an ls_embedding()");
	const ls_param *words = &graph->params.rows[graph->nodes[producer].weight];
	if (words->layout.in != in)
		return ls_build_mistake(graph, LS_EINVALID, "'%s': the words are %d wide and its input is %d", name,
					words->layout.in, in);
	int vocabulary = words->layout.out;
	ls_value out = rows_value(graph, x, vocabulary);
	ls_node *node = ls_build_node(graph, LS_NODE_LINEAR, name, x, out);
	if (!node)
		return ls_build_invalid;
	node->tied = graph->nodes[producer].weight;
	graph->nodes[producer].is_tied = 1;
	node->bias = ls_build_param(graph, name, "bias", ls_build_vector(vocabulary, LS_ROLE_BIAS, LS_INIT_ZERO, in));
	return graph->status == LS_OK ? out : ls_build_invalid;
}

void ls_graph_order_tied(ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		for (int later = i + 1; later < graph->node_count && graph->nodes[i].tied != LS_NONE; later++)
			graph->nodes[i].adds_tied |= graph->nodes[later].tied == graph->nodes[i].tied;
}

/* ---- rows by themselves ------------------------------------------------------------------------------------------ */

ls_value ls_layer_norm(ls_graph *graph, ls_value x, const char *name, float epsilon)
{
	if (!usable_rows(graph, x, "layer_norm"))
		return ls_build_invalid;
	if (graph->tokens_max == 0)
		return ls_build_mistake(graph, LS_EINVALID,
					"layer_norm works on text, and this graph's input is images");
	if (!name)
		return ls_build_mistake(graph, LS_EINVALID, "layer_norm needs a name");
	int channels = graph->values[x.id].channels;
	ls_value out = ls_build_like(graph, x);
	ls_node *node = ls_build_node(graph, LS_NODE_LAYER_NORM, name, x, out);
	if (!node)
		return ls_build_invalid;
	node->epsilon = epsilon > 0 ? epsilon : 1e-5f;
	node->weight = ls_build_param(graph, name, "weight", ls_build_vector(channels, LS_ROLE_NORM, LS_INIT_ONE, 1));
	node->bias = ls_build_param(graph, name, "bias", ls_build_vector(channels, LS_ROLE_NORM, LS_INIT_ZERO, 1));
	return graph->status == LS_OK ? out : ls_build_invalid;
}

static ls_value pointwise(ls_graph *graph, ls_value x, ls_node_kind kind, int gelu)
{
	if (!usable_rows(graph, x, ls_node_kind_name(kind)))
		return ls_build_invalid;
	ls_value out = ls_build_like(graph, x);
	ls_node *node = ls_build_node(graph, kind, NULL, x, out);
	if (node)
		node->gelu = gelu;
	return out;
}

ls_value ls_gelu(ls_graph *graph, ls_value x, int approximate)
{
	return pointwise(graph, x, LS_NODE_GELU, approximate ? 2 : 1);
}

ls_value ls_tanh(ls_graph *graph, ls_value x)
{
	return pointwise(graph, x, LS_NODE_TANH, 0);
}

/* ---- rows with each other ---------------------------------------------------------------------------------------- */

static int check_heads(ls_graph *graph, int channels, int heads)
{
	int width = heads > 0 && channels % heads == 0 ? channels / heads : 0;
	if (width != 16 && width != 32 && width != 64)
		ls_build_mistake(graph, LS_EINVALID,
				 "attention: %d heads in a width of %d; a head must be 16, 32 or 64 wide", heads,
				 channels);
	return graph->status == LS_OK;
}

ls_value ls_attend(ls_graph *graph, ls_value q, ls_value k, ls_value v, ls_attention_options o)
{
	if (!usable_tokens(graph, q, "attention") || !usable_tokens(graph, k, "attention") ||
	    !usable_tokens(graph, v, "attention"))
		return ls_build_invalid;
	int channels = graph->values[q.id].channels;
	if (graph->values[k.id].channels != channels || graph->values[v.id].channels != channels)
		return ls_build_mistake(graph, LS_EINVALID, "attention: q, k and v must be of one width");
	if (!(o.dropout >= 0 && o.dropout < 1))
		return ls_build_mistake(graph, LS_EINVALID, "attention: dropout %g is not in [0, 1)",
					(double)o.dropout);
	if (!check_heads(graph, channels, o.heads))
		return ls_build_invalid;
	ls_value out = ls_build_like(graph, q);
	ls_node *node = ls_build_node(graph, LS_NODE_ATTENTION, NULL, q, out);
	if (!node)
		return ls_build_invalid;
	node->second = k.id;
	node->third = v.id;
	node->heads = o.heads;
	node->probability = o.dropout;
	if (o.dropout > 0)
		node->ordinal = graph->dropouts++;
	return out;
}

ls_status ls_graph_check_attention(const ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		const int operands[3] = { node->input, node->second, node->third };
		for (int k = 0; k < 3 && node->kind == LS_NODE_ATTENTION && !node->dropped; k++)
			if (ls_graph_consumers(graph, operands[k]) != 1)
				return ls_fail(LS_EINVALID, "attention: each of q, k and v must be a value of its own "
							    "that nothing else reads");
	}
	return LS_OK;
}

static ls_value gather(ls_graph *graph, ls_value x, ls_node_kind kind, ls_domain domain, int height)
{
	if (!usable_tokens(graph, x, ls_node_kind_name(kind)))
		return ls_build_invalid;
	ls_value out = ls_build_value(graph, graph->values[x.id].channels, height, 1);
	if (out.id == LS_NONE)
		return out;
	graph->values[out.id].domain = domain;
	ls_build_node(graph, kind, NULL, x, out);
	return out;
}

ls_value ls_first_token(ls_graph *graph, ls_value x)
{
	return gather(graph, x, LS_NODE_FIRST, LS_SAMPLES, 1);
}

ls_value ls_mean_token(ls_graph *graph, ls_value x)
{
	return gather(graph, x, LS_NODE_MEAN, LS_SAMPLES, 1);
}

ls_value ls_masked_positions(ls_graph *graph, ls_value x)
{
	if (graph->status == LS_OK && graph->masked_max == 0)
		return ls_build_mistake(graph, LS_EINVALID, "picked_tokens: the input has no tokens to be predicted");
	return gather(graph, x, LS_NODE_MASKED, LS_MASKED, graph->masked_max);
}
