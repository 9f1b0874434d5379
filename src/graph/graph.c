/*
 * graph.c - the builder: each call checks shapes, adds a value, a node and its parameters.
 */
#include "graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "params/panel.h"

ls_status ls_graph_new(ls_graph **out)
{
	ls_graph *graph = calloc(1, sizeof(*graph));
	if (!graph)
		return ls_fail(LS_EMEMORY, "no memory for a graph");
	graph->input = graph->logits = graph->token_logits = LS_NONE;
	*out = graph;
	return LS_OK;
}

void ls_graph_free(ls_graph *graph)
{
	if (!graph)
		return;
	ls_arena_release(&graph->arena);
	free(graph->values);
	free(graph->nodes);
	free(graph->params.rows);
	free(graph);
}

ls_value ls_input(ls_graph *graph, int channels, int height, int width)
{
	if (graph->status != LS_OK)
		return ls_build_invalid;
	if (graph->input != LS_NONE)
		return ls_build_mistake(graph, LS_EINVALID, "a graph has one input; ls_input() was called twice");
	if (channels < 1 || height < 1 || width < 1 || channels > 65536 || height > 16384 || width > 16384)
		return ls_build_mistake(graph, LS_EINVALID, "an input of %d channels, %d x %d is not possible",
					channels, height, width);
	ls_value value = ls_build_value(graph, channels, height, width);
	if (value.id != LS_NONE) {
		graph->values[value.id].is_input = 1;
		graph->input = value.id;
	}
	return value;
}

/* Layers other than a gathering convolution want panels: put the input into them, once. */
static ls_value packed(ls_graph *graph, ls_value x)
{
	if (!ls_build_usable(graph, x) || !graph->values[x.id].is_input)
		return x;
	if (graph->tokens_max > 0)
		return ls_build_mistake(
			graph, LS_EINVALID,
			"a layer cannot work on the tokens of ls_text_input(); use ls_embedding() first");
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].kind == LS_NODE_PACK)
			return (ls_value){ graph->nodes[i].output };
	ls_tensor in = graph->values[x.id];
	ls_value out = ls_build_value(graph, in.channels, in.height, in.width);
	ls_build_node(graph, LS_NODE_PACK, NULL, x, out);
	return out;
}

#define GATHER_CHANNELS 16 /* fewer input channels than this: patches instead of panels */

static int16_t *make_slots(ls_graph *graph, const ls_conv_geometry *g, int *live)
{
	int16_t *slot = ls_arena_alloc(&graph->arena, sizeof(*slot) * (size_t)(g->kernel_h * g->kernel_w));
	if (!slot)
		ls_build_mistake(graph, LS_EMEMORY, "no memory for the filter taps");
	else
		*live = ls_conv_slots(g, slot);
	return slot;
}

ls_param_init ls_build_init(ls_weight_init init)
{
	switch (init) {
	case LS_WEIGHTS_HE_FAN_OUT:
		return LS_INIT_HE_FAN_OUT;
	case LS_WEIGHTS_HE_FAN_IN:
		return LS_INIT_HE_FAN_IN;
	case LS_WEIGHTS_ZERO:
		return LS_INIT_ZERO;
	case LS_WEIGHTS_NORMAL:
		return LS_INIT_NORMAL;
	default:
		return LS_INIT_UNIFORM_FAN_IN;
	}
}

static ls_param conv_param(ls_graph *graph, const ls_conv_geometry *g, ls_weight_init init)
{
	int taps = g->kernel_h * g->kernel_w, live = taps;
	ls_param row = { .role = LS_ROLE_WEIGHT,
			 .init = ls_build_init(init),
			 .fan_in = g->in_c * taps,
			 .rank = 4,
			 .shape = { g->out_c, g->in_c, g->kernel_h, g->kernel_w } };
	int16_t *slot = g->gathered ? NULL : make_slots(graph, g, &live);

	row.layout = (ls_weight_layout){ .out = g->out_c,
					 .in = g->in_c,
					 .taps = taps,
					 .out_panel = ls_panel_width(g->out_c),
					 .in_panel = g->gathered ? g->in_c * taps : ls_panel_width(g->in_c),
					 .gathered = g->gathered,
					 .live_taps = live,
					 .slot = slot };
	return row;
}

/* The layer's weights, and the patches of a gathered one, a sample. */
static int check_conv_size(ls_graph *graph, const char *name, const ls_conv_geometry *g)
{
	int64_t taps = (int64_t)g->kernel_h * g->kernel_w;
	int64_t inputs = g->gathered ? g->in_c : ls_build_padded(g->in_c);

	if (ls_build_too_many(ls_build_padded(g->out_c), inputs, taps))
		ls_build_mistake(
			graph, LS_EINVALID,
			"'%s': weights of %d x %d x %d x %d are too large: at most %d floats, padding included", name,
			g->out_c, g->in_c, g->kernel_h, g->kernel_w, LS_FLOATS_MOST);
	else if (g->gathered && ls_build_too_many((int64_t)g->out_h * g->out_w, (g->in_c * taps + 15) / 16 * 16, 1))
		ls_build_mistake(graph, LS_EINVALID,
				 "'%s': a kernel of %dx%d on an image of %dx%d reads too much; use a larger stride",
				 name, g->kernel_h, g->kernel_w, g->in_h, g->in_w);
	return graph->status == LS_OK;
}

static ls_value add_conv(ls_graph *graph, ls_value x, const char *name, ls_conv_geometry g, ls_weight_init init,
			 int bias, int linear)
{
	g.gathered = graph->values[x.id].is_input && g.in_c < GATHER_CHANNELS;
	if (!g.gathered)
		x = packed(graph, x);
	if (!g.gathered && g.kernel_h * g.kernel_w > INT16_MAX)
		return ls_build_mistake(graph, LS_EINVALID,
					"'%s': a kernel of %dx%d has too many taps; pool its input first", name,
					g.kernel_h, g.kernel_w);
	if (graph->status != LS_OK || !check_conv_size(graph, name, &g))
		return ls_build_invalid;
	ls_param weight = conv_param(graph, &g, init);
	if (linear) {
		weight.rank = 2;
		weight.shape[1] = (int64_t)g.in_c * g.kernel_h * g.kernel_w;
	}
	ls_value out = ls_build_value(graph, g.out_c, g.out_h, g.out_w);
	ls_node *node = ls_build_node(graph, LS_NODE_CONV, name, x, out);
	if (!node)
		return ls_build_invalid;
	node->conv = g;
	node->weight = ls_build_param(graph, name, "weight", weight);
	if (bias)
		node->bias = ls_build_param(
			graph, name, "bias",
			ls_build_vector(g.out_c, LS_ROLE_BIAS,
					init == LS_WEIGHTS_UNIFORM ? LS_INIT_UNIFORM_FAN_IN : LS_INIT_ZERO,
					weight.fan_in));
	return graph->status == LS_OK ? out : ls_build_invalid;
}

/* `name` is NULL for layers that have none. */
static int check_window(ls_graph *graph, const char *what, const char *name, const ls_tensor *in, int kernel_h,
			int kernel_w, int stride, int padding)
{
	const char *open = name ? " '" : "", *close = name ? "'" : "";

	if (!name)
		name = "";
	if (kernel_h < 1 || kernel_w < 1 || stride < 1 || padding < 0 || kernel_h > 255 || kernel_w > 255 ||
	    padding > 255)
		ls_build_mistake(graph, LS_EINVALID,
				 "%s%s%s%s: kernel %dx%d, stride %d, padding %d is not possible (at most 255)", what,
				 open, name, close, kernel_h, kernel_w, stride, padding);
	else if (in->height + 2 * padding < kernel_h || in->width + 2 * padding < kernel_w)
		ls_build_mistake(graph, LS_EINVALID,
				 "%s%s%s%s: kernel %dx%d is larger than its input of %dx%d with padding %d", what, open,
				 name, close, kernel_h, kernel_w, in->height, in->width, padding);
	return graph->status == LS_OK;
}

ls_value ls_conv2d(ls_graph *graph, ls_value x, const char *name, ls_conv_options o)
{
	if (!ls_build_usable_image(graph, x, "conv2d"))
		return ls_build_invalid;
	ls_tensor in = graph->values[x.id];
	ls_conv_geometry g = { .in_c = in.channels,
			       .in_h = in.height,
			       .in_w = in.width,
			       .out_c = o.out_channels,
			       .kernel_h = o.kernel_h ? o.kernel_h : o.kernel,
			       .kernel_w = o.kernel_w ? o.kernel_w : o.kernel,
			       .stride = o.stride ? o.stride : 1,
			       .padding = o.padding };

	if (!name || o.out_channels < 1)
		return ls_build_mistake(graph, LS_EINVALID, "conv2d '%s' needs a name and at least one output channel",
					name ? name : "");
	if (!check_window(graph, "conv2d", name, &in, g.kernel_h, g.kernel_w, g.stride, g.padding))
		return ls_build_invalid;
	g.out_h = (in.height + 2 * g.padding - g.kernel_h) / g.stride + 1;
	g.out_w = (in.width + 2 * g.padding - g.kernel_w) / g.stride + 1;
	return add_conv(graph, x, name, g, o.init, o.bias, 0);
}

/* A linear layer reads (C, H, W) as it is: skip a flatten, and the packing of an input it would gather anyway. */
static ls_value before_flatten(const ls_graph *graph, ls_value x)
{
	static const ls_node_kind skipped[] = { LS_NODE_FLATTEN, LS_NODE_PACK };
	for (int k = 0; k < 2; k++) {
		int producer = ls_graph_producer(graph, x.id);
		if (producer != LS_NONE && graph->nodes[producer].kind == skipped[k])
			x.id = graph->nodes[producer].input;
	}
	return x;
}

ls_value ls_linear(ls_graph *graph, ls_value x, const char *name, ls_linear_options o)
{
	if (!ls_build_usable(graph, x))
		return ls_build_invalid;
	if (!name || o.out_features < 1)
		return ls_build_mistake(graph, LS_EINVALID, "linear '%s' needs a name and at least one output feature",
					name ? name : "");
	if (graph->tokens_max > 0)
		return ls_build_linear_rows(graph, x, name, o);
	/* The kernel that covers the whole input: no data moves to flatten it. */
	x = before_flatten(graph, x);
	ls_tensor in = graph->values[x.id];
	ls_conv_geometry g = { .in_c = in.channels,
			       .in_h = in.height,
			       .in_w = in.width,
			       .out_c = o.out_features,
			       .out_h = 1,
			       .out_w = 1,
			       .kernel_h = in.height,
			       .kernel_w = in.width,
			       .stride = 1 };
	return add_conv(graph, x, name, g, o.init, o.bias, 1);
}

ls_value ls_batch_norm(ls_graph *graph, ls_value x, const char *name, ls_norm_options o)
{
	x = packed(graph, x);
	if (!ls_build_usable_image(graph, x, "batch_norm"))
		return ls_build_invalid;
	if (!name)
		return ls_build_mistake(graph, LS_EINVALID, "batch_norm needs a name");
	ls_tensor in = graph->values[x.id];
	ls_value out = ls_build_value(graph, in.channels, in.height, in.width);
	ls_node *node = ls_build_node(graph, LS_NODE_NORM, name, x, out);
	if (!node)
		return ls_build_invalid;
	node->epsilon = o.epsilon > 0 ? o.epsilon : 1e-5f;
	node->momentum = o.momentum > 0 ? o.momentum : 0.1f;
	ls_param scale = ls_build_vector(in.channels, LS_ROLE_NORM, o.zero_init ? LS_INIT_ZERO : LS_INIT_ONE, 1);
	ls_param shift = ls_build_vector(in.channels, LS_ROLE_NORM, LS_INIT_ZERO, 1);
	ls_param mean = ls_build_vector(in.channels, LS_ROLE_BUFFER, LS_INIT_ZERO, 1);
	ls_param var = ls_build_vector(in.channels, LS_ROLE_BUFFER, LS_INIT_ONE, 1);
	ls_param counter = { .role = LS_ROLE_COUNTER, .init = LS_INIT_ZERO };
	node->weight = ls_build_param(graph, name, "weight", scale);
	node->bias = ls_build_param(graph, name, "bias", shift);
	node->running_mean = ls_build_param(graph, name, "running_mean", mean);
	node->running_var = ls_build_param(graph, name, "running_var", var);
	ls_build_param(graph, name, "num_batches_tracked", counter);
	graph->coupled = 1;
	return graph->status == LS_OK ? out : ls_build_invalid;
}

ls_value ls_relu(ls_graph *graph, ls_value x)
{
	x = packed(graph, x);
	if (!ls_build_usable(graph, x))
		return ls_build_invalid;
	ls_value out = ls_build_like(graph, x);
	ls_node *node = ls_build_node(graph, LS_NODE_RELU, NULL, x, out);
	if (node)
		node->relu = 1;
	return out;
}

ls_value ls_add(ls_graph *graph, ls_value a, ls_value b)
{
	a = packed(graph, a);
	b = packed(graph, b);
	if (!ls_build_usable(graph, a) || !ls_build_usable(graph, b))
		return ls_build_invalid;
	ls_tensor ta = graph->values[a.id], tb = graph->values[b.id];
	if (ta.domain != tb.domain)
		return ls_build_mistake(graph, LS_EINVALID, "add: one operand has %s, the other %s",
					ls_domain_name(ta.domain), ls_domain_name(tb.domain));
	if (ta.channels != tb.channels || ta.height != tb.height || ta.width != tb.width)
		return ls_build_mistake(graph, LS_EINVALID, "add: %dx%dx%d and %dx%dx%d have different shapes",
					ta.channels, ta.height, ta.width, tb.channels, tb.height, tb.width);
	ls_value out = ls_build_like(graph, a);
	ls_node *node = ls_build_node(graph, LS_NODE_ADD, NULL, a, out);
	if (node)
		node->second = b.id;
	return out;
}

static ls_value add_pool(ls_graph *graph, ls_value x, ls_node_kind kind, int kernel_h, int kernel_w, int stride,
			 int padding)
{
	ls_tensor in = graph->values[x.id];
	int out_h = (in.height + 2 * padding - kernel_h) / stride + 1;
	int out_w = (in.width + 2 * padding - kernel_w) / stride + 1;
	ls_value out = ls_build_value(graph, in.channels, out_h, out_w);
	ls_node *node = ls_build_node(graph, kind, NULL, x, out);

	if (node)
		node->pool = (ls_pool_geometry){ .in_h = in.height,
						 .in_w = in.width,
						 .out_h = out_h,
						 .out_w = out_w,
						 .kernel_h = kernel_h,
						 .kernel_w = kernel_w,
						 .stride = stride,
						 .padding = padding };
	return out;
}

static ls_value pool2d(ls_graph *graph, ls_value x, ls_node_kind kind, ls_pool_options o)
{
	const char *what = ls_node_kind_name(kind);
	int stride = o.stride ? o.stride : o.kernel;

	x = packed(graph, x);
	if (!ls_build_usable_image(graph, x, what))
		return ls_build_invalid;
	if (!check_window(graph, what, NULL, &graph->values[x.id], o.kernel, o.kernel, stride, o.padding))
		return ls_build_invalid;
	if (o.padding * 2 > o.kernel || o.kernel > 15)
		return ls_build_mistake(graph, LS_EINVALID,
					"%s: padding %d must be at most half of kernel %d, and the kernel at most 15",
					what, o.padding, o.kernel);
	return add_pool(graph, x, kind, o.kernel, o.kernel, stride, o.padding);
}

ls_value ls_max_pool2d(ls_graph *graph, ls_value x, ls_pool_options options)
{
	return pool2d(graph, x, LS_NODE_MAX_POOL, options);
}

ls_value ls_avg_pool2d(ls_graph *graph, ls_value x, ls_pool_options options)
{
	return pool2d(graph, x, LS_NODE_AVG_POOL, options);
}

ls_value ls_global_avg_pool(ls_graph *graph, ls_value x)
{
	x = packed(graph, x);
	if (!ls_build_usable_image(graph, x, "global_avg_pool"))
		return ls_build_invalid;
	return add_pool(graph, x, LS_NODE_AVG_POOL, graph->values[x.id].height, graph->values[x.id].width, 1, 0);
}

ls_value ls_flatten(ls_graph *graph, ls_value x)
{
	x = packed(graph, x);
	if (!ls_build_usable_image(graph, x, "flatten"))
		return ls_build_invalid;
	ls_tensor in = graph->values[x.id];
	if (in.height * in.width == 1)
		return x;
	ls_value out = ls_build_value(graph, in.channels * in.height * in.width, 1, 1);
	ls_build_node(graph, LS_NODE_FLATTEN, NULL, x, out);
	return out;
}

ls_value ls_dropout(ls_graph *graph, ls_value x, float probability)
{
	x = packed(graph, x);
	if (!ls_build_usable(graph, x))
		return ls_build_invalid;
	if (!(probability >= 0 && probability < 1))
		return ls_build_mistake(graph, LS_EINVALID, "dropout: probability %g is not in [0, 1)",
					(double)probability);
	if (probability == 0)
		return x;
	ls_value out = ls_build_like(graph, x);
	ls_node *node = ls_build_node(graph, LS_NODE_DROPOUT, NULL, x, out);
	if (node) {
		node->probability = probability;
		node->ordinal = graph->dropouts++;
	}
	return out;
}

/* Values that nobody reads: drop who made them, last first; a layer with parameters would get no gradient. */
static ls_status drop_unread(ls_graph *graph)
{
	for (int i = graph->node_count - 1; i >= 0; i--) {
		ls_node *node = &graph->nodes[i];
		if (ls_graph_consumers(graph, node->output) > 0)
			continue;
		if (node->weight != LS_NONE || node->bias != LS_NONE)
			return ls_fail(LS_EINVALID,
				       "the loss does not depend on layer '%s'; use its output or remove it",
				       node->name);
		node->dropped = 1;
	}
	return LS_OK;
}

static ls_status check_logits(const ls_graph *graph, ls_value logits)
{
	const ls_tensor *out = &graph->values[logits.id];
	if (out->is_input)
		return ls_fail(LS_EINVALID, "a graph needs at least one layer between its input and its logits");
	if (out->domain != LS_SAMPLES || out->height * out->width != 1)
		return ls_fail(LS_EINVALID, "logits must be (classes, 1, 1), not %s(%d, %d, %d)",
			       out->domain != LS_SAMPLES ? "one a token, " : "", out->channels, out->height,
			       out->width);
	if (out->channels < 2)
		return ls_fail(LS_EINVALID, "logits must tell at least 2 classes apart, this has %d", out->channels);
	return LS_OK;
}

static ls_status check_token_logits(const ls_graph *graph, ls_value logits)
{
	const ls_tensor *out = &graph->values[logits.id];
	if (out->domain != LS_MASKED)
		return ls_fail(LS_EINVALID, "logits of tokens must be made of masked positions (ls_picked_tokens)");
	if (out->channels < 2 || out->channels < ls_graph_vocabulary(graph))
		return ls_fail(LS_EINVALID, "logits of tokens tell %d words apart, and the vocabulary has %d",
			       out->channels, ls_graph_vocabulary(graph));
	return LS_OK;
}

static ls_status close_graph(ls_graph *graph)
{
	LS_TRY(drop_unread(graph));
	LS_TRY(ls_graph_check_attention(graph));
	ls_graph_fuse(graph);
	ls_graph_order_tied(graph);
	graph->finished = 1;
	ls_params_lay_out(&graph->params, 0);
	return LS_OK;
}

ls_status ls_graph_finish(ls_graph *graph, ls_value logits)
{
	ls_build_usable(graph, logits);
	if (graph->status != LS_OK)
		return ls_fail(graph->status, "%s", graph->message);
	LS_TRY(check_logits(graph, logits));
	graph->logits = logits.id;
	return close_graph(graph);
}

ls_status ls_graph_finish_pretraining(ls_graph *graph, ls_value logits, ls_value token_logits)
{
	ls_build_usable(graph, logits);
	ls_build_usable(graph, token_logits);
	if (graph->status != LS_OK)
		return ls_fail(graph->status, "%s", graph->message);
	LS_TRY(check_logits(graph, logits));
	LS_TRY(check_token_logits(graph, token_logits));
	graph->logits = logits.id;
	graph->token_logits = token_logits.id;
	return close_graph(graph);
}

void ls_graph_keep_dead(ls_graph *graph, int keep_dead)
{
	ls_params_lay_out(&graph->params, keep_dead);
}
