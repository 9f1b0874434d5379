/*
 * graph.h - describe a model.
 *
 * A graph is built by calls that each add one layer and return the value it produces:
 *
 *     ls_graph *g = NULL;
 *     if (ls_graph_new(&g)) return fail();
 *     ls_value x = ls_input(g, 1, 28, 28);
 *     x = ls_conv2d(g, x, "conv1", (ls_conv_options){ .out_channels = 32, .kernel = 3, .padding = 1, .bias = 1 });
 *     x = ls_relu(g, x);
 *     x = ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2, .stride = 2 });
 *     x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = 10, .bias = 1 });
 *     if (ls_graph_finish(g, x)) { puts(ls_last_error()); ls_graph_free(g); return 1; }
 *
 * A mistake (channels that do not fit, a kernel larger than its padded input, a name used twice) is remembered by the
 * graph; later calls do nothing and ls_graph_finish() reports the first one. The loss is softmax cross-entropy on the
 * value given to ls_graph_finish(). Layer names become parameter names in checkpoints: "conv1" gives "conv1.weight"
 * and "conv1.bias", shaped as PyTorch shapes them.
 */
#ifndef LOCKSTEP_GRAPH_H
#define LOCKSTEP_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_graph ls_graph;

/* What a layer produced. Pass it to other layers; do not look inside. */
typedef struct ls_value {
	int id;
} ls_value;

/* How a layer's weights start. */
typedef enum ls_weight_init {
	LS_WEIGHTS_UNIFORM,    /* U(-b, b), b = 1/sqrt(fan_in), bias too: PyTorch's default */
	LS_WEIGHTS_HE_FAN_OUT, /* N(0, sqrt(2 / fan_out)): torchvision's ResNets; bias 0 */
	LS_WEIGHTS_HE_FAN_IN,  /* N(0, sqrt(2 / fan_in)), for a layer that a relu follows; bias 0 */
	LS_WEIGHTS_ZERO        /* 0, for the last layer: all classes start equally likely */
} ls_weight_init;

/*
 * Limits: a value (of one sample) and a layer's weights have at most 2^31 - 1 floats, counted with channels rounded up
 * to 16, 32 or a multiple of 64.
 */
typedef struct ls_conv_options {
	int out_channels;
	int kernel; /* square; or kernel_h and kernel_w; 1 .. 255, and at most 32767 taps */
	int kernel_h, kernel_w;
	int stride;  /* 0 means 1 */
	int padding; /* 0 .. 255 */
	int bias;
	ls_weight_init init;
} ls_conv_options;

typedef struct ls_linear_options {
	int out_features;
	int bias;
	ls_weight_init init;
} ls_linear_options;

typedef struct ls_pool_options {
	int kernel, stride, padding; /* kernel 1 .. 15; stride 0 means kernel; padding at most half the kernel */
} ls_pool_options;

typedef struct ls_norm_options {
	float epsilon;  /* 0 means 1e-5 */
	float momentum; /* 0 means 0.1: running = 0.9 running + 0.1 batch */
	int zero_init;  /* start the scale at 0 instead of 1 (the last norm of a residual branch) */
} ls_norm_options;

ls_status ls_graph_new(ls_graph **out);
void ls_graph_free(ls_graph *graph);

ls_value ls_input(ls_graph *graph, int channels, int height, int width);
ls_value ls_conv2d(ls_graph *graph, ls_value x, const char *name, ls_conv_options options);
ls_value ls_linear(ls_graph *graph, ls_value x, const char *name, ls_linear_options options); /* flattens (C, H, W) */
ls_value ls_batch_norm(ls_graph *graph, ls_value x, const char *name, ls_norm_options options);
ls_value ls_relu(ls_graph *graph, ls_value x);
ls_value ls_add(ls_graph *graph, ls_value a, ls_value b);
ls_value ls_max_pool2d(ls_graph *graph, ls_value x, ls_pool_options options);
ls_value ls_avg_pool2d(ls_graph *graph, ls_value x, ls_pool_options options); /* padding counts, as in PyTorch */
ls_value ls_global_avg_pool(ls_graph *graph, ls_value x);
ls_value ls_flatten(ls_graph *graph, ls_value x); /* (C, H, W) -> (C*H*W, 1, 1); ls_linear does it by itself */
ls_value ls_dropout(ls_graph *graph, ls_value x, float probability);

/* Close the graph: `logits` goes into softmax cross-entropy and must be (classes, 1, 1), at least 2 classes. No layer
 * can be added from here. Lays out parameters; training lays them out once more, since with coupled weight decay
 * weights that never meet the image are trained as well. One graph serves one training run at a time. */
ls_status ls_graph_finish(ls_graph *graph, ls_value logits);

/* Facts about a finished graph. */
typedef struct ls_graph_facts {
	uint64_t parameters;           /* trainable */
	uint64_t gradient_bytes;       /* what one step produces and would exchange: live parameters only */
	double flop_per_sample;        /* forward + backward, counting only taps inside the image */
	double padded_flop_per_sample; /* the same counting padding, as usually published */
	int layers;
} ls_graph_facts;
ls_graph_facts ls_graph_describe(const ls_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
