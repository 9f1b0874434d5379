/*
 * emit.h - the ONNX graph under construction: what rows.c translates operators with.
 *
 * A value of ours has rows and channels; in ONNX it has one of three forms, and is converted where a reader wants
 * another one:
 *
 *   LS_ONNX_MAPS    (batch, channels, height, width)   images
 *   LS_ONNX_ROWS    (batch, channels)                  one row per sample
 *   LS_ONNX_SEQ     (batch, rows, channels)            tokens, masked positions, positions of an image
 */
#ifndef LS_ONNX_EMIT_H
#define LS_ONNX_EMIT_H

#include "graph/graph.h"
#include "onnx/protobuf.h"

typedef enum ls_onnx_form { LS_ONNX_MAPS, LS_ONNX_ROWS, LS_ONNX_SEQ } ls_onnx_form;

typedef struct ls_onnx_value {
	const char *name; /* NULL: not made yet */
	ls_onnx_form form;
} ls_onnx_value;

/* A weight, or a small constant of float or int64. */
typedef struct ls_onnx_constant {
	const char *name;
	const ls_param *param; /* NULL: one of these */
	const float *floats;
	const int64_t *integers;
	int64_t shape[4];
	int rank;
} ls_onnx_constant;

typedef struct ls_onnx {
	const ls_graph *graph;
	ls_arena arena;
	int failed;            /* no memory */
	ls_pb nodes;           /* fields `node` of the graph */
	ls_onnx_value *values; /* (values of the graph) */
	ls_onnx_constant *constants;
	size_t constant_count, constant_room;
	int names;        /* handed out so far */
	const char *mask; /* text: float (batch, tokens), 1 where there is a token; NULL: images */
	const char *bias; /* text: what attention adds to its scores, (batch, 1, 1, tokens); NULL: not made yet */
} ls_onnx;

/* A new name, "relu_7". */
const char *ls_onnx_name(ls_onnx *to, const char *what);

/* Attributes of a node, a list that ends with a NULL name. */
typedef struct ls_onnx_attribute {
	const char *name;
	enum { LS_ONNX_INT, LS_ONNX_INTS, LS_ONNX_FLOAT } kind;
	int64_t integers[4];
	int count; /* of INTS */
	float number;
} ls_onnx_attribute;
#define LS_ONNX_INT_OF(key, value)                                                                                     \
	{                                                                                                              \
		.name = (key), .kind = LS_ONNX_INT, .integers = {(value) }                                             \
	}
#define LS_ONNX_FLOAT_OF(key, value)                                                                                   \
	{                                                                                                              \
		.name = (key), .kind = LS_ONNX_FLOAT, .number = (value)                                                \
	}

/* A node with one output, whose name is returned. `inputs` ends with NULL. */
const char *ls_onnx_node(ls_onnx *to, const char *op, const char *const *inputs, const ls_onnx_attribute *attributes);
const char *ls_onnx_unary(ls_onnx *to, const char *op, const char *x);
const char *ls_onnx_binary(ls_onnx *to, const char *op, const char *a, const char *b);

/* Constants: a parameter of the graph, floats, integers, one float. */
const char *ls_onnx_param(ls_onnx *to, int row);
const char *ls_onnx_floats(ls_onnx *to, const float *values, int count);
const char *ls_onnx_integers(ls_onnx *to, const int64_t *values, int count);
const char *ls_onnx_scalar(ls_onnx *to, float value);

/* A value in the form that a reader wants; and the form it has. */
const char *ls_onnx_read(ls_onnx *to, int value, ls_onnx_form form);
ls_onnx_form ls_onnx_form_of(const ls_onnx *to, int value);
/* As rows or as a sequence, whichever its rows are. */
const char *ls_onnx_read_rows(ls_onnx *to, int value, ls_onnx_form *form);

/* The node's output. */
void ls_onnx_set(ls_onnx *to, int value, const char *name, ls_onnx_form form);

/* Translate a node of the graph. LS_EUNSUPPORTED: ONNX has nothing like it. */
ls_status ls_onnx_translate(ls_onnx *to, const ls_node *node);

#endif
