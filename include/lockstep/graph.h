/*
 * graph.h - describe a model.
 *
 * A graph is built by calls that each add one layer and return the value it produces:
 *
 *     ls_graph *g = NULL;
 *     if (ls_graph_new(&g)) return fail();
 *     ls_value x = ls_input(g, 1, 28, 28);
 *     x = ls_conv2d(g, x, "conv1", (ls_conv_options){ .out_channels = 32, .kernel = 3, .padding = 1 });
 *     x = ls_relu(g, x);
 *     x = ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2, .stride = 2 });
 *     x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = 10 });
 *     if (ls_graph_finish(g, x)) { puts(ls_last_error()); ls_graph_free(g); return 1; }
 *
 * A mistake (channels that do not fit, a kernel larger than its padded input, a name used twice) is remembered by the
 * graph; later calls do nothing and ls_graph_finish() reports the first one. The loss is softmax cross-entropy on the
 * value given to ls_graph_finish(), unless others were added. Layer names become parameter names in checkpoints:
 * "conv1" gives "conv1.weight" and "conv1.bias", shaped as PyTorch shapes them.
 */
#ifndef LOCKSTEP_GRAPH_H
#define LOCKSTEP_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/operators.h>
#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_graph ls_graph;

/* The output of a layer. Pass it to other layers; its content is private. */
typedef struct ls_value {
	int id;
} ls_value;

/* How a layer's weights start. */
typedef enum ls_weight_init {
	LS_WEIGHTS_UNIFORM,    /* U(-b, b), b = 1/sqrt(fan_in), bias too: PyTorch's default */
	LS_WEIGHTS_HE_FAN_OUT, /* N(0, sqrt(2 / fan_out)): torchvision's ResNets; bias 0 */
	LS_WEIGHTS_HE_FAN_IN,  /* N(0, sqrt(2 / fan_in)), for a layer that a relu follows; bias 0 */
	LS_WEIGHTS_ZERO,       /* 0, for the last layer: all classes start equally likely */
	LS_WEIGHTS_NORMAL      /* N(0, 0.02): BERT's; bias 0 */
} ls_weight_init;

/*
 * Attributes of operators. A field left at 0 means PyTorch's default, which stands beside it; fields marked "required"
 * have none.
 *
 * Limits: a value (of one sample) and a layer's weights have at most 2^31 - 1 floats, counted with channels rounded up
 * to 16, 32 or a multiple of 64.
 */
typedef struct ls_conv_options {
	int out_channels;       /* required */
	int kernel;             /* required: square; 1 .. 255, and at most 32767 taps */
	int kernel_h, kernel_w; /* 0: kernel */
	int stride;             /* 0: 1 */
	int padding;            /* 0 .. 255; 0: none */
	int no_bias;            /* 0: with a bias; 1: PyTorch's bias=False, as before a batch norm */
	ls_weight_init init;    /* 0: LS_WEIGHTS_UNIFORM */
} ls_conv_options;

typedef struct ls_linear_options {
	int out_features;    /* required */
	int no_bias;         /* 0: with a bias; 1: PyTorch's bias=False */
	ls_weight_init init; /* 0: LS_WEIGHTS_UNIFORM */
	int per_position;    /* 0: images are flattened, (C, H, W); 1: each position by itself, as tokens always are */
	int is_transposed; /* 0: the weight is (out, in); 1: (in, out), as in GPT-2's files. Not for flattened images */
	float init_std;    /* deviation of LS_WEIGHTS_NORMAL; 0: 0.02 */
} ls_linear_options;

/* Max and average pooling. */
typedef struct ls_pool_options {
	int kernel;  /* required: square, 1 .. 15 */
	int stride;  /* 0: kernel */
	int padding; /* at most half the kernel; 0: none. An average counts it */
} ls_pool_options;

typedef struct ls_batch_norm_options {
	float eps;      /* 0: 1e-5 */
	float momentum; /* 0: 0.1, running = 0.9 running + 0.1 batch */
	int zero_init;  /* 0: the weight starts at 1; 1: at 0, for the last norm of a residual branch */
} ls_batch_norm_options;

typedef struct ls_layer_norm_options {
	float eps; /* 0: 1e-5 */
} ls_layer_norm_options;

typedef struct ls_slice_options {
	int first;    /* of the channels that are taken */
	int channels; /* required: how many */
} ls_slice_options;

typedef struct ls_gelu_options {
	int approximate; /* 0: exact, x Phi(x); 1: PyTorch's approximate='tanh' */
} ls_gelu_options;

typedef struct ls_dropout_options {
	float p; /* probability of 0, in [0, 1). 0: nothing is dropped; PyTorch's 0.5 must be written out */
} ls_dropout_options;

LS_API ls_status ls_graph_new(ls_graph **out);
LS_API void ls_graph_free(ls_graph *graph); /* harmless on NULL and twice */

/*
 * Text. A sample is a run of tokens; a graph of text begins with ls_text_input() and ls_embedding(), after which a
 * value has one row per token. Sentences are packed end to end and never padded:
 *
 *     ls_value x = ls_text_input(g, 64, 0);
 *     x = ls_embedding(g, x, (ls_embedding_options){ .words = "words", .positions = "positions", .vocabulary = 8000,
 *                                                    .longest = 64, .width = 256 });
 *     ls_value q = ls_linear(g, x, "q", same), k = ls_linear(g, x, "k", same), v = ls_linear(g, x, "v", same);
 *     ls_value y = ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = 4 });
 *     x = ls_layer_norm(g, ls_add(g, x, y), "norm", (ls_layer_norm_options){ 0 });
 *     x = ls_linear(g, ls_mean_token(g, x), "fc", (ls_linear_options){ .out_features = 5 });
 */
typedef struct ls_embedding_options {
	const char *words, *positions; /* required: names of the tables */
	const char *segments;          /* NULL: no such table */
	int vocabulary;                /* required: rows of words */
	int longest;                   /* required: rows of positions */
	int width;                     /* required: any; attention wants whole heads */
	int unused;                    /* fills the struct up; stays 0 */
} ls_embedding_options;

typedef struct ls_attention_options {
	int num_heads; /* required: width / num_heads must be 16, 32 or 64 */
	float dropout; /* of the probabilities, in [0, 1); 0: none */
	int is_causal; /* 0: a row sees all rows of its sample; 1: those up to itself */
} ls_attention_options;

/* "<layer>.cls_token" and "<layer>.position_embeddings", unless they have other names. */
typedef struct ls_class_token_options {
	const char *token, *positions;
} ls_class_token_options;

typedef struct ls_cross_entropy_options {
	float label_smoothing;      /* share of each label that is spread over all classes, in [0, 1); 0: none */
	const float *class_weights; /* (classes) factors of the loss, PyTorch's weight; NULL: all 1 */
} ls_cross_entropy_options;

/* The input: images; or the tokens of a sample, and how many are to be predicted at most. */
LS_API ls_value ls_input(ls_graph *graph, int channels, int height, int width);
LS_API ls_value ls_text_input(ls_graph *graph, int longest, int masked);

/*
 * The layers: a function for each line of lockstep/operators.h, with the operator's name. docs/operators.md has their
 * formulas. In ls_attention(), every row of a sample, a token or a position of an image, looks at all rows of its
 * sample. Losses return nothing. All losses of a graph are added up: those of samples as their mean, those of masked
 * positions, which are classified by the id that stood there, as theirs.
 */
#define LS_PLAIN_BUILDER(op) LS_API ls_value ls_##op(ls_graph *graph, ls_value x);
#define LS_PAIR_BUILDER(op) LS_API ls_value ls_##op(ls_graph *graph, ls_value a, ls_value b);
#define LS_LOSS_BUILDER(op) LS_API void ls_##op(ls_graph *graph, ls_value x);
/* Attributes are given by value. What the library exports takes their size, too, so that later versions can have more
 * of them. */
#define LS_OPTIONS_BUILDER(op, type)                                                                                   \
	LS_API ls_value ls_##op##_sized(ls_graph *graph, ls_value x, const type *options, size_t size);                \
	static inline ls_value ls_##op(ls_graph *graph, ls_value x, type options)                                      \
	{                                                                                                              \
		return ls_##op##_sized(graph, x, &options, sizeof(options));                                           \
	}
#define LS_TRIPLE_BUILDER(op, type)                                                                                    \
	LS_API ls_value ls_##op##_sized(ls_graph *graph, ls_value q, ls_value k, ls_value v, const type *options,      \
					size_t size);                                                                  \
	static inline ls_value ls_##op(ls_graph *graph, ls_value q, ls_value k, ls_value v, type options)              \
	{                                                                                                              \
		return ls_##op##_sized(graph, q, k, v, &options, sizeof(options));                                     \
	}
#define LS_LAYER_BUILDER(op, type)                                                                                     \
	LS_API ls_value ls_##op##_sized(ls_graph *graph, ls_value x, const char *name, const type *options,            \
					size_t size);                                                                  \
	static inline ls_value ls_##op(ls_graph *graph, ls_value x, const char *name, type options)                    \
	{                                                                                                              \
		return ls_##op##_sized(graph, x, name, &options, sizeof(options));                                     \
	}
#define LS_OPTIONS_LOSS_BUILDER(op, type)                                                                              \
	LS_API void ls_##op##_sized(ls_graph *graph, ls_value x, const type *options, size_t size);                    \
	static inline void ls_##op(ls_graph *graph, ls_value x, type options)                                          \
	{                                                                                                              \
		ls_##op##_sized(graph, x, &options, sizeof(options));                                                  \
	}
#define LS_OWN_BUILDER(op)
LS_OPERATORS(LS_PLAIN_BUILDER, LS_PAIR_BUILDER, LS_OPTIONS_BUILDER, LS_TRIPLE_BUILDER, LS_LAYER_BUILDER,
	     LS_LOSS_BUILDER, LS_OPTIONS_LOSS_BUILDER, LS_OWN_BUILDER)

/* A linear layer. It flattens images (C, H, W), unless options.per_position; of text it works on each row. */
LS_LAYER_BUILDER(linear, ls_linear_options)
/* A linear layer whose weights are the words of `embedding`: (vocabulary) per row; "<name>.bias" is its own. Several
 * layers may share them. Without a name (NULL) it has no bias. */
LS_API ls_value ls_tied_linear(ls_graph *graph, ls_value x, ls_value embedding, const char *name);

/* The first mistake so far; LS_OK: none. For those who want to know before ls_graph_finish(). */
LS_API ls_status ls_graph_check(const ls_graph *graph);

/* Close the graph: `output` is what it predicts, (classes, 1, 1). Where no loss was added, it is softmax cross-entropy
 * of the output, of at least 2 classes. No layer can be added from here. Lays out parameters; training lays them out
 * once more, since with coupled weight decay unreachable weights are trained as well. One graph serves
 * one training run at a time. */
LS_API ls_status ls_graph_finish(ls_graph *graph, ls_value output);

/* The same for pretraining: the loss is the mean cross-entropy of the samples' labels plus the mean over all masked
 * positions, for which `token_logits` are (vocabulary) per masked position. */
LS_API ls_status ls_graph_finish_pretraining(ls_graph *graph, ls_value logits, ls_value token_logits);

/* The same for a language model: `token_logits` are (vocabulary) per position to be predicted, and the loss is the mean
 * over all of these. It predicts the token after the last one. */
LS_API ls_status ls_graph_finish_language(ls_graph *graph, ls_value token_logits);

/* Facts about a finished graph. Those of text are of a sample of the greatest length. */
typedef struct ls_graph_facts {
	uint64_t parameters;           /* trainable */
	uint64_t gradient_bytes;       /* what one step produces and would exchange: reachable parameters only */
	double flop_per_sample;        /* forward + backward, counting only taps inside the image */
	double padded_flop_per_sample; /* the same counting padding, as usually published */
	int layers;
	uint64_t reserved[8]; /* 0 */
} ls_graph_facts;
LS_API ls_graph_facts ls_graph_describe(const ls_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
