/*
 * inspect.h - walk a finished graph: what it computes, layer by layer.
 *
 *     ls_graph_node node;
 *     for (int i = 0; ls_graph_node_at(graph, i, &node); i++)
 *         printf("%s %s: %d x %d x %d\n", node.layer, node.operator_name, node.output.channels, node.output.height,
 *                node.output.width);
 *
 * These are the nodes that run: what is computed together with its neighbour has become part of that (`fused`), and
 * layers that nothing reads are gone. ls_model_graph() is the graph of a model in memory. `lockstep models NAME` prints
 * such a table.
 */
#ifndef LOCKSTEP_INSPECT_H
#define LOCKSTEP_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the rows of a value are. */
typedef enum ls_rows {
	LS_ROWS_POSITIONS, /* height x width positions of an image; 1 x 1: one row per sample */
	LS_ROWS_TOKENS,    /* one per token; height is the most that a sample has, width 1 */
	LS_ROWS_MASKED     /* one per masked position, in the same way */
} ls_rows;

typedef struct ls_value_shape {
	ls_rows rows;
	int channels, height, width;
} ls_value_shape;

/* Inputs and parameters that a node has at most. */
enum { LS_NODE_INPUTS = 3, LS_NODE_PARAMS = 5 };

typedef struct ls_graph_node {
	const char *operator_name; /* "conv2d": a row of docs/operators.md, or a custom operator's name */
	const char *layer;         /* "layer1.0.conv1", or the operator's name where it has no parameters. Borrowed */
	int is_loss;               /* losses come last, and have no output */
	int inputs;
	int input[LS_NODE_INPUTS]; /* nodes that it reads, in the operator's order; -1: the graph's input */
	ls_value_shape output;     /* of a loss: all 0 */
	int params;
	int param[LS_NODE_PARAMS]; /* ls_graph_param_at(); of others' that it shares, too */
	const char *fused;         /* what follows inside the same node: "relu", "add, relu"; NULL: nothing. Borrowed */
	double flop;               /* forward and backward per sample; of text, of the longest */
	uint64_t reserved[8];      /* 0 */
} ls_graph_node;

typedef struct ls_graph_param {
	const char *name; /* "layer1.0.conv1.weight". Borrowed */
	int is_trained;   /* not a running statistic or a counter */
	int rank;
	int64_t shape[4];
	uint64_t reserved[4]; /* 0 */
} ls_graph_param;

/* Node or parameter i of a finished graph; 0: there is none, or the graph is not finished. */
LS_API int ls_graph_node_at(const ls_graph *graph, int i, ls_graph_node *out);
LS_API int ls_graph_param_at(const ls_graph *graph, int i, ls_graph_param *out);

/* What samples must look like; of text, channels is 1 and height the most tokens. All 0: the graph has no input. */
LS_API ls_value_shape ls_graph_input_shape(const ls_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
