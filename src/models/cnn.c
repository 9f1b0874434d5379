/*
 * cnn.c - the small network of the published MNIST and bigMNIST runs: 421,642 parameters on 28x28x1 with 10 classes.
 */
#include "models/family.h"

/* 3x3 convolution that keeps the size, relu, then halve: (c, h, w) -> (channels, h/2, w/2). */
static ls_value stage(ls_graph *g, ls_value x, const char *name, int channels)
{
	x = ls_conv2d(
		g, x, name,
		(ls_conv_options){ .out_channels = channels, .kernel = 3, .padding = 1, .init = LS_WEIGHTS_HE_FAN_IN });
	return ls_max_pool2d(g, ls_relu(g, x), (ls_pool_options){ .kernel = 2, .stride = 2 });
}

ls_status ls_model_cnn(ls_graph *g, const ls_model_options *o)
{
	ls_value x = ls_input(g, o->channels, o->height, o->width);

	x = stage(g, x, "conv1", 32);
	x = stage(g, x, "conv2", 64);
	x = ls_linear(g, x, "fc1", (ls_linear_options){ .out_features = 128, .init = LS_WEIGHTS_HE_FAN_IN });
	x = ls_dropout(g, ls_relu(g, x), (ls_dropout_options){ .p = o->dropout });
	x = ls_linear(g, x, "fc2", (ls_linear_options){ .out_features = o->classes, .init = LS_WEIGHTS_ZERO });
	return ls_graph_finish(g, x);
}
