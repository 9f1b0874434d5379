/*
 * graph.h - internals of lockstep/graph.h: values, nodes and the parameters they own.
 *
 * The builder (build.c) appends nodes in forward order; each operator's row (ops/op.h) says what fits and what it owns.
 * ls_graph_finish() fuses neighbours (fuse.c), drops what became empty and lays out parameters. After that the graph is
 * constant and any number of backends can run it.
 */
#ifndef LS_GRAPH_GRAPH_H
#define LS_GRAPH_GRAPH_H

#include <lockstep/data.h>
#include <lockstep/graph.h>

#include "ops/op.h"
#include "params/params.h"

enum { LS_LOSSES_MAX = 4 };

#define LS_GRAPH_KIND "graph" /* handles.h */

struct ls_graph {
	ls_arena arena;
	ls_status status; /* of the first mistake */
	char message[512];
	int finished;
	ls_tensor *values;
	int value_count, value_capacity;
	ls_node *nodes;
	int node_count, node_capacity;
	ls_param_table params;
	int input, logits;             /* values; logits: what the graph predicts */
	ls_node losses[LS_LOSSES_MAX]; /* nodes without output, which run behind all others */
	int loss_count;
	int tokens_max, masked_max; /* per sample; 0: images */
	int predicts_next;          /* a language model: the logits are those of positions to be predicted */
	int coupled;                /* some node mixes samples (batch statistics): a micro-batch must run as a whole */
	int streams;                /* of random numbers, handed out to nodes */
	ls_task task;               /* decides the loss of a graph that has none when it is finished */
	ls_precision precision;     /* of products: precision.c */
	int conv_algorithm;         /* of convolutions, an ls_conv_algorithm: conv_algorithm.c */
};

/*
 * Add an operator: check that its inputs can be used, apply the shape rule of its row, add the value, the parameters
 * and the node. `name` is the layer's, NULL where it has no parameters; `attributes` is what the row wants. After a
 * mistake nothing is added, and the invalid value returned.
 */
ls_value ls_graph_add(ls_graph *graph, const ls_op_type *type, const char *name, const ls_value *inputs,
		      const void *attributes);

/* The same for a node whose weight is that of node `owner`. */
ls_value ls_graph_add_borrower(ls_graph *graph, const ls_op_type *type, const char *name, ls_value x,
			       const void *attributes, int owner);

/* Record the first mistake; later ones are dropped. Returns the invalid value. */
__attribute__((format(printf, 3, 4))) ls_value ls_graph_mistake(ls_graph *graph, ls_status status, const char *format,
								...);

/* The graph is alive and open, without a mistake so far, and x is one of its values. */
int ls_graph_usable(ls_graph *graph, ls_value x);

/* A value that no node makes: the graph's input. */
ls_value ls_graph_add_value(ls_graph *graph, ls_tensor tensor);

/* The trained rows of the parameter table that a node owns: up to LS_NODE_ROWS. */
enum { LS_NODE_ROWS = 3 };
int ls_node_rows(const ls_graph *graph, const ls_node *node, int rows[LS_NODE_ROWS]);

/*
 * Where gradients live only until their node is done, nodes share memory as large as the largest one's. The words of an
 * embedding that a linear layer shares have memory of their own behind it, for two nodes contribute to their gradient.
 * Floats in all, and the place of a row of the parameter table that `node` writes.
 */
size_t ls_graph_shared_floats(const ls_graph *graph);
size_t ls_graph_shared_place(const ls_graph *graph, const ls_node *node, int row);

/* Consumers of a value among nodes that are still there, losses included. What the graph predicts counts as read even
 * where no loss reads it. */
int ls_graph_consumers(const ls_graph *graph, int value);
int ls_graph_producer(const ls_graph *graph, int value); /* node id or LS_NONE */

void ls_graph_fuse(ls_graph *graph);

/*
 * Freeze the parameters whose names match one of `patterns`, shell patterns with commas between them; NULL: none, and
 * what was frozen before is not any more. They keep their values in training, have no gradient and no optimizer state,
 * and lie behind the reachable ones; what only they would need is not computed. A batch norm with both its parameters
 * frozen keeps its running statistics as well, and normalises by them. Lays parameters out again: before any store is
 * allocated. A pattern that matches nothing, and patterns that match everything, are errors. Where some layers are
 * adapters (".lora_" in their names), all others are frozen whatever the patterns say.
 */
ls_status ls_graph_freeze(ls_graph *graph, const char *patterns);

/*
 * precision.c: compute the products of convolutions, linear layers and attention in bf16, of layers alone in bf16-amx
 * or bf16-layers, forward and backward, or all in fp32. `auto` is resolved to what ls_precision_choose() finds.
 */
ls_status ls_graph_set_precision(ls_graph *graph, const char *precision);

/* The fastest precision by a measurement, and what it measured; fp32 unless another one is clearly faster. It
 * is made once per process. */
typedef struct ls_precision_choice {
	ls_precision precision;
	double rates[LS_PRECISION_COUNT]; /* ls_op_product_rates() */
} ls_precision_choice;
ls_status ls_precision_choose(ls_precision_choice *out);

/* The names of precisions in the order of ls_precision, then "auto", and what they are. NULL past the end. */
const char *ls_precision_name_at(size_t i);
const char *ls_precision_summary_at(size_t i);

/* conv_algorithm.c: compute convolutions by this algorithm: "auto", which a new graph has, "direct" or "winograd". */
ls_status ls_graph_set_conv(ls_graph *graph, const char *algorithm);

/* The names of algorithms, in the order of ls_conv_algorithm, and what they are. NULL past the end. */
const char *ls_conv_algorithm_name_at(size_t i);
const char *ls_conv_algorithm_summary_at(size_t i);

/* Mark the values that depend on a parameter that is trained. */
void ls_graph_mark_gradients(ls_graph *graph);

/* Lay parameters out again, with unreachable weights trained or not: before any store is allocated. */
void ls_graph_keep_unreachable(ls_graph *graph, int keep);

/* Floating-point operations of forward and backward of a sample with `tokens` tokens, `masked` of them to be
 * predicted. */
double ls_graph_text_flop(const ls_graph *graph, double tokens, double masked);
double ls_node_text_flop(const ls_graph *graph, int node, double tokens, double masked); /* of one node */

int ls_graph_vocabulary(const ls_graph *graph); /* tokens it knows; 0: images */

/* Multiply-adds per sample in training: forward, weight gradient, and data gradient unless the input is the image. */
double ls_node_macs(const ls_graph *graph, const ls_node *node, int count_padding);

/* A loss of what it predicts is cross-entropy. */
int ls_graph_classifies(const ls_graph *graph);

/* A loss is of masked positions: it learns from tokens to predict. */
int ls_graph_predicts_tokens(const ls_graph *graph);

/* What float targets are for it, by the losses of what it predicts. */
ls_task ls_graph_task(const ls_graph *graph);

/* Channels of what it predicts. */
static inline int ls_graph_outputs(const ls_graph *graph)
{
	return graph->values[graph->logits].channels;
}

/* How many labels the graph can tell apart: a channel for each, or what its losses make of a single channel. */
int ls_graph_classes(const ls_graph *graph);

/* The layer whose output is the logits, by name, when it has weights of its own, a row per class; NULL: it has not. */
const char *ls_graph_head(const ls_graph *graph);

/* The first batch norm whose maps are 1x1 and that is not frozen, by name; NULL: there is none. In a micro-batch of one
 * sample it has one value per channel, which normalises to zero whatever it is. */
const char *ls_graph_single_norm(const ls_graph *graph);

/*
 * After a step: running = (1 - momentum) * running + momentum * batch, batch being the mean over the step's
 * micro-batches, weighted by samples. `sums` holds the sum over micro-batches of samples * statistic for buffers
 * [begin, end), and begins there; element by element, so any cut gives the same bits.
 */
void ls_graph_update_running(const ls_graph *graph, const float *sums, size_t begin, size_t end, double samples,
			     float *buffers);

#endif
