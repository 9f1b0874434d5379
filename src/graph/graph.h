/*
 * graph.h - inside of lockstep/graph.h: values, nodes and the parameters they own.
 *
 * The builder appends nodes in forward order; ls_graph_finish() fuses neighbours (fuse.c), drops what became empty and
 * lays out parameters. After that the graph is constant and can be executed by any number of executors (exec.h).
 */
#ifndef LS_GRAPH_GRAPH_H
#define LS_GRAPH_GRAPH_H

#include <lockstep/graph.h>

#include "kernels/conv.h"
#include "kernels/simd.h"
#include "params/params.h"

/* What the rows of a value are. */
typedef enum ls_domain {
	LS_SAMPLES, /* positions times samples: [blocks][H][W][N][panel] */
	LS_TOKENS,  /* tokens of the tile, packed end to end: [blocks][tokens][panel]; height is the most a sample has
		     */
	LS_MASKED,  /* tokens to be predicted, likewise */
	LS_DOMAINS
} ls_domain;

/* What a node produced: (channels, height, width) a sample, stored as panels. */
typedef struct ls_tensor {
	int channels, height, width;
	int panel, blocks;
	ls_domain domain;
	int is_input; /* sample-major images straight from the loader; no gradient */
} ls_tensor;

static inline int64_t ls_tensor_floats(const ls_tensor *t) /* a sample */
{
	return (int64_t)t->blocks * t->panel * t->height * t->width;
}

typedef enum ls_node_kind {
	LS_NODE_PACK, /* input images -> panels, where the first layer does not gather */
	LS_NODE_CONV, /* and linear */
	LS_NODE_NORM,
	LS_NODE_RELU,
	LS_NODE_ADD,
	LS_NODE_MAX_POOL,
	LS_NODE_AVG_POOL, /* global too */
	LS_NODE_FLATTEN,  /* panels of (C, H, W) -> panels of (C*H*W, 1, 1), PyTorch's order */
	LS_NODE_DROPOUT,
	LS_NODE_EMBED,  /* tokens -> rows of tables */
	LS_NODE_LINEAR, /* over rows: of tokens, masked positions, or samples made of them; tied too */
	LS_NODE_LAYER_NORM,
	LS_NODE_GELU,
	LS_NODE_TANH,
	LS_NODE_ATTENTION,
	LS_NODE_FIRST,  /* the first token of each sample */
	LS_NODE_MEAN,   /* the mean over a sample's tokens */
	LS_NODE_MASKED, /* the tokens to be predicted */
	LS_NODE_KIND_COUNT
} ls_node_kind;

#define LS_NONE (-1)

typedef struct ls_node {
	ls_node_kind kind;
	const char *name;  /* layer name, or the kind's for layers without parameters */
	int input, second; /* values; second: residual of an add or of a norm it was fused into, else LS_NONE */
	int third;         /* attention: input, second, third are q, k, v */
	int output;
	int relu;          /* fused: max(0, .) on the output */
	int norm_consumer; /* conv: node id of the norm that wants its moments, or LS_NONE */
	int weight, bias;  /* rows of the parameter table, or LS_NONE. norm: scale and shift. embed: words, positions */
	int segments;      /* embed: the third table, or LS_NONE */
	int tied;    /* linear: the row of an embed's words that serves as its weight, or LS_NONE. Its gradient is final
			only when the embed has added its part */
	int is_tied; /* embed: some linear layer shares its words */
	int adds_tied; /* linear: a later one shares the same words, whose gradient is there before */
	int gelu;      /* linear: fused, 1: erf form, 2: tanh form. gelu: likewise */
	int heads;     /* attention */
	int running_mean, running_var;
	ls_conv_geometry conv;
	ls_pool_geometry pool;   /* n and panel are filled at run time */
	float epsilon, momentum; /* norm */
	float probability;       /* dropout; of attention's probabilities; of a layer norm's input, fused */
	int ordinal;             /* dropout: which one, for its random stream */
	int dropped;             /* fused away */
} ls_node;

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
	int input, logits;
	int token_logits;           /* (vocabulary) a masked position, or LS_NONE */
	int tokens_max, masked_max; /* of a sample; 0: images */
	int coupled;                /* some node mixes samples (batch statistics): a micro-batch must run as a whole */
	int dropouts;
};

/* The rows of the parameter table that a node owns: up to LS_NODE_ROWS. */
enum { LS_NODE_ROWS = 3 };
static inline int ls_node_rows(const ls_node *node, int rows[LS_NODE_ROWS])
{
	const int all[LS_NODE_ROWS] = { node->weight, node->bias, node->segments };
	int count = 0;
	for (int k = 0; k < LS_NODE_ROWS; k++)
		if (all[k] != LS_NONE)
			rows[count++] = all[k];
	return count;
}

/*
 * Where gradients live only until their node is done, nodes share the room of the largest one. Words that a linear
 * layer shares have a place of their own behind it, for their gradient is made by two nodes. Floats in all, and the
 * place of a row of the parameter table that `node` writes.
 */
size_t ls_graph_shared_floats(const ls_graph *graph);
size_t ls_graph_shared_place(const ls_graph *graph, const ls_node *node, int row);

/* Consumers of a value among nodes that are still there. */
int ls_graph_consumers(const ls_graph *graph, int value);
int ls_graph_producer(const ls_graph *graph, int value); /* node id or LS_NONE */

void ls_graph_fuse(ls_graph *graph);

/* Who begins and who adds, where several linear layers share an embedding's words. */
void ls_graph_order_tied(ls_graph *graph);

/* Attention writes the gradients of its operands: nobody else may read those. */
ls_status ls_graph_check_attention(const ls_graph *graph);

/* Lay parameters out again, with dead weights kept live or not: before any store is made. */
void ls_graph_keep_dead(ls_graph *graph, int keep_dead);

const char *ls_node_kind_name(ls_node_kind kind);
const char *ls_domain_name(ls_domain domain); /* "a row a token" */

/* Floating-point operations of forward and backward of a sample with so many tokens, so many of them to be predicted.
 */
double ls_graph_text_flop(const ls_graph *graph, double tokens, double masked);
double ls_node_text_flop(const ls_graph *graph, int node, double tokens, double masked); /* of one node of it */

int ls_graph_vocabulary(const ls_graph *graph); /* tokens it knows; 0: images */

/* Multiply-adds a sample costs in training: forward, weight gradient, and data gradient unless the input is the image.
 */
double ls_node_macs(const ls_graph *graph, const ls_node *node, int count_padding);

/* The layer whose output is the logits, by name, when it has weights of its own, a row per class; NULL: it has not. */
const char *ls_graph_head(const ls_graph *graph);

/* The first batch norm whose maps are 1x1, by name; NULL: there is none. In a micro-batch of one sample it has one
 * value per channel, which normalises to zero whatever it is. */
const char *ls_graph_single_norm(const ls_graph *graph);

/*
 * After a step: running = (1 - momentum) * running + momentum * batch, batch being the mean over the step's
 * micro-batches, weighted by samples. `sums` holds the sum over micro-batches of samples * statistic for buffers
 * [begin, end), and begins there; element by element, so any cut gives the same bits.
 */
void ls_graph_update_running(const ls_graph *graph, const float *sums, size_t begin, size_t end, double samples,
			     float *buffers);

#endif
