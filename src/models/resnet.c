/*
 * resnet.c - torchvision's ResNets: the same layers, names, shapes and initial distributions.
 *
 *   stem    7x7 convolution of stride 2, norm, relu, 3x3 max pool of stride 2; for small images (resnet18-cifar)
 *           a 3x3 convolution of stride 1, norm, relu
 *   stage s blocks of width 64 * 2^s; the first block of stages 1..3 halves the map
 *   head    global average, linear
 */
#include "models/family.h"

typedef struct resnet {
	ls_graph *graph;
	int expansion; /* output channels of a block over its width: 1 basic, 4 bottleneck */
	int blocks[4];
	int has_small_stem;
} resnet;

static ls_value conv_norm(ls_graph *g, ls_value x, ls_layer_name conv, ls_layer_name norm, int channels, int kernel,
			  int stride)
{
	x = ls_conv2d(g, x, conv.text,
		      (ls_conv_options){ .out_channels = channels,
					 .kernel = kernel,
					 .stride = stride,
					 .padding = kernel / 2,
					 .no_bias = 1,
					 .init = LS_WEIGHTS_HE_FAN_OUT });
	return ls_batch_norm(g, x, norm.text, (ls_batch_norm_options){ 0 });
}

/* 3x3, 3x3 around a skip. */
static ls_value basic_branch(ls_graph *g, ls_value x, const char *prefix, int width, int stride)
{
	x = ls_relu(g, conv_norm(g, x, ls_named(prefix, "conv1"), ls_named(prefix, "bn1"), width, 3, stride));
	return conv_norm(g, x, ls_named(prefix, "conv2"), ls_named(prefix, "bn2"), width, 3, 1);
}

/* 1x1, 3x3 (which strides), 1x1 to four times the width. */
static ls_value bottleneck_branch(ls_graph *g, ls_value x, const char *prefix, int width, int stride)
{
	x = ls_relu(g, conv_norm(g, x, ls_named(prefix, "conv1"), ls_named(prefix, "bn1"), width, 1, 1));
	x = ls_relu(g, conv_norm(g, x, ls_named(prefix, "conv2"), ls_named(prefix, "bn2"), width, 3, stride));
	return conv_norm(g, x, ls_named(prefix, "conv3"), ls_named(prefix, "bn3"), 4 * width, 1, 1);
}

static ls_value block(const resnet *net, ls_value x, const char *prefix, int width, int stride, int project)
{
	ls_graph *g = net->graph;
	ls_value branch = net->expansion == 1 ? basic_branch(g, x, prefix, width, stride)
					      : bottleneck_branch(g, x, prefix, width, stride);
	if (project)
		x = conv_norm(g, x, ls_named(prefix, "downsample.0"), ls_named(prefix, "downsample.1"),
			      width * net->expansion, 1, stride);
	return ls_relu(g, ls_add(g, branch, x));
}

static ls_value stage(const resnet *net, ls_value x, int s)
{
	int width = 64 << s;
	char prefix[32];

	for (int b = 0; b < net->blocks[s]; b++) {
		int stride = b == 0 && s > 0 ? 2 : 1;
		int project = b == 0 && (s > 0 || net->expansion > 1);
		snprintf(prefix, sizeof(prefix), "layer%d.%d", s + 1, b);
		x = block(net, x, prefix, width, stride, project);
	}
	return x;
}

static ls_value stem(const resnet *net, ls_value x)
{
	ls_graph *g = net->graph;
	int kernel = net->has_small_stem ? 3 : 7;

	x = ls_conv2d(g, x, "conv1",
		      (ls_conv_options){ .out_channels = 64,
					 .kernel = kernel,
					 .stride = net->has_small_stem ? 1 : 2,
					 .padding = kernel / 2,
					 .no_bias = 1,
					 .init = LS_WEIGHTS_HE_FAN_OUT });
	x = ls_relu(g, ls_batch_norm(g, x, "bn1", (ls_batch_norm_options){ 0 }));
	return net->has_small_stem ? x
				   : ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 });
}

static ls_status build(ls_graph *g, const ls_model_options *o, resnet net)
{
	net.graph = g;
	ls_value x = stem(&net, ls_input(g, o->channels, o->height, o->width));
	for (int s = 0; s < 4; s++)
		x = stage(&net, x, s);
	x = ls_dropout(g, ls_global_avg_pool(g, x), (ls_dropout_options){ .p = o->dropout });
	x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = o->classes });
	return ls_graph_finish(g, x);
}

ls_status ls_model_resnet18(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 1, .blocks = { 2, 2, 2, 2 } });
}

ls_status ls_model_resnet18_cifar(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 1, .blocks = { 2, 2, 2, 2 }, .has_small_stem = 1 });
}

ls_status ls_model_resnet34(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 1, .blocks = { 3, 4, 6, 3 } });
}

ls_status ls_model_resnet50(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 4, .blocks = { 3, 4, 6, 3 } });
}

ls_status ls_model_resnet101(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 4, .blocks = { 3, 4, 23, 3 } });
}

ls_status ls_model_resnet152(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (resnet){ .expansion = 4, .blocks = { 3, 8, 36, 3 } });
}
