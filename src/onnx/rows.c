/*
 * rows.c - operators as nodes of ONNX (opset 17), one function each.
 *
 * What fusion has added to a node (graph/fuse.c) is taken apart again: the sum before or behind it, then its bias, then
 * its activation. Dropout is nothing in a model that predicts.
 */
#include <math.h>

#include "kernels/conv.h"
#include "kernels/simd.h"
#include "onnx/emit.h"

typedef void translate_fn(ls_onnx *to, const ls_node *node);

#define INPUTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* x / 2 (1 + erf(x / sqrt(2))) */
static const char *gelu(ls_onnx *to, const char *x)
{
	const char *e = ls_onnx_unary(to, "Erf", ls_onnx_binary(to, "Mul", x, ls_onnx_scalar(to, (float)M_SQRT1_2)));
	const char *half = ls_onnx_binary(to, "Mul", x, ls_onnx_scalar(to, 0.5f));
	return ls_onnx_binary(to, "Mul", half, ls_onnx_binary(to, "Add", e, ls_onnx_scalar(to, 1)));
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
static const char *gelu_tanh(ls_onnx *to, const char *x)
{
	const char *cube = ls_onnx_binary(to, "Mul", ls_onnx_binary(to, "Mul", x, x), x);
	const char *inner =
		ls_onnx_binary(to, "Add", x, ls_onnx_binary(to, "Mul", cube, ls_onnx_scalar(to, 0.044715f)));
	const char *scaled = ls_onnx_binary(to, "Mul", inner, ls_onnx_scalar(to, (float)sqrt(2 / M_PI)));
	const char *half = ls_onnx_binary(to, "Mul", x, ls_onnx_scalar(to, 0.5f));
	return ls_onnx_binary(to, "Mul", half,
			      ls_onnx_binary(to, "Add", ls_onnx_unary(to, "Tanh", scaled), ls_onnx_scalar(to, 1)));
}

static const char *activate(ls_onnx *to, const ls_node *node, const char *x)
{
	switch (node->activation) {
	case LS_ACT_RELU:
		return ls_onnx_unary(to, "Relu", x);
	case LS_ACT_GELU:
		return gelu(to, x);
	case LS_ACT_GELU_TANH:
		return gelu_tanh(to, x);
	default:
		return x;
	}
}

/* Of each number by itself: the form stays. */
static void finish_like(ls_onnx *to, const ls_node *node, const char *y)
{
	ls_onnx_set(to, node->output, activate(to, node, y), ls_onnx_form_of(to, node->inputs[0]));
}

static const char *bare_input(ls_onnx *to, const ls_node *node)
{
	return to->values[node->inputs[0]].name;
}

static void relu(ls_onnx *to, const ls_node *node)
{
	finish_like(to, node, ls_onnx_unary(to, "Relu", bare_input(to, node)));
}

static void tanh_(ls_onnx *to, const ls_node *node)
{
	finish_like(to, node, ls_onnx_unary(to, "Tanh", bare_input(to, node)));
}

static void sigmoid(ls_onnx *to, const ls_node *node)
{
	finish_like(to, node, ls_onnx_unary(to, "Sigmoid", bare_input(to, node)));
}

static void silu(ls_onnx *to, const ls_node *node)
{
	const char *x = bare_input(to, node);
	finish_like(to, node, ls_onnx_binary(to, "Mul", x, ls_onnx_unary(to, "Sigmoid", x)));
}

static void gelu_alone(ls_onnx *to, const ls_node *node)
{
	const ls_gelu_options *o = node->attributes;
	const char *x = bare_input(to, node);
	finish_like(to, node, o->approximate ? gelu_tanh(to, x) : gelu(to, x));
}

/* ---- sums and the like ------------------------------------------------------------------------------------------- */

static void pairwise(ls_onnx *to, const ls_node *node, const char *op)
{
	ls_onnx_form form = ls_onnx_form_of(to, node->inputs[0]);
	finish_like(to, node, ls_onnx_binary(to, op, bare_input(to, node), ls_onnx_read(to, node->inputs[1], form)));
}

static void add(ls_onnx *to, const ls_node *node)
{
	pairwise(to, node, "Add");
}

static void multiply(ls_onnx *to, const ls_node *node)
{
	pairwise(to, node, "Mul");
}

static void concat(ls_onnx *to, const ls_node *node)
{
	ls_onnx_form form = ls_onnx_form_of(to, node->inputs[0]);
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", form == LS_ONNX_SEQ ? 2 : 1), { 0 } };
	finish_like(to, node,
		    ls_onnx_node(to, "Concat", INPUTS(bare_input(to, node), ls_onnx_read(to, node->inputs[1], form)),
				 attributes));
}

static void slice(ls_onnx *to, const ls_node *node)
{
	const ls_slice_options *o = node->attributes;
	ls_onnx_form form = ls_onnx_form_of(to, node->inputs[0]);
	const int64_t first = o->first, end = o->first + o->channels, axis = form == LS_ONNX_SEQ ? 2 : 1;

	finish_like(to, node,
		    ls_onnx_node(to, "Slice",
				 INPUTS(bare_input(to, node), ls_onnx_integers(to, &first, 1),
					ls_onnx_integers(to, &end, 1), ls_onnx_integers(to, &axis, 1)),
				 NULL));
}

static void identity(ls_onnx *to, const ls_node *node)
{
	finish_like(to, node, bare_input(to, node));
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static void window(ls_onnx_attribute out[4], int64_t kernel_h, int64_t kernel_w, int64_t stride, int64_t padding)
{
	out[0] = (ls_onnx_attribute){ "kernel_shape", LS_ONNX_INTS, { kernel_h, kernel_w }, 2, 0 };
	out[1] = (ls_onnx_attribute){ "strides", LS_ONNX_INTS, { stride, stride }, 2, 0 };
	out[2] = (ls_onnx_attribute){ "pads", LS_ONNX_INTS, { padding, padding, padding, padding }, 4, 0 };
	out[3] = (ls_onnx_attribute){ 0 };
}

static const char *param(ls_onnx *to, const ls_node *node, int slot)
{
	return node->params[slot] == LS_NONE ? NULL : ls_onnx_param(to, node->params[slot]);
}

static void conv2d(ls_onnx *to, const ls_node *node)
{
	const ls_conv_geometry *g = node->attributes;
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS);
	ls_onnx_attribute attributes[4];

	window(attributes, g->kernel_h, g->kernel_w, g->stride, g->padding);
	x = ls_onnx_node(to, "Conv", INPUTS(x, param(to, node, LS_WEIGHT), param(to, node, LS_BIAS)), attributes);
	ls_onnx_set(to, node->output, activate(to, node, x), LS_ONNX_MAPS);
}

/* The weight is (in, out), not (out, in). */
static int is_transposed(const ls_onnx *to, const ls_node *node)
{
	int row = node->borrowed != LS_NONE ? node->borrowed : node->params[LS_WEIGHT];
	return to->graph->params.rows[row].layout.is_transposed;
}

static const char *gemm(ls_onnx *to, const ls_node *node, const char *x, const char *weight)
{
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("transB", !is_transposed(to, node)), { 0 } };
	return ls_onnx_node(to, "Gemm", INPUTS(x, weight, param(to, node, LS_BIAS)), attributes);
}

/* Over a whole map, as PyTorch flattens it. */
static void linear_map(ls_onnx *to, const ls_node *node)
{
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", 1), { 0 } };
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS);

	x = ls_onnx_node(to, "Flatten", INPUTS(x), attributes);
	x = activate(to, node, gemm(to, node, x, param(to, node, LS_WEIGHT)));
	ls_onnx_set(to, node->output, x, LS_ONNX_ROWS);
}

static void linear(ls_onnx *to, const ls_node *node)
{
	int row = node->borrowed != LS_NONE ? node->borrowed : node->params[LS_WEIGHT];
	const char *weight = ls_onnx_param(to, row), *bias = param(to, node, LS_BIAS);
	ls_onnx_form form;
	const char *x = ls_onnx_read_rows(to, node->inputs[0], &form);

	if (form == LS_ONNX_ROWS) {
		x = gemm(to, node, x, weight);
	} else {
		x = ls_onnx_binary(to, "MatMul", x,
				   is_transposed(to, node) ? weight : ls_onnx_unary(to, "Transpose", weight));
		x = bias ? ls_onnx_binary(to, "Add", x, bias) : x;
	}
	ls_onnx_set(to, node->output, activate(to, node, x), form);
}

static void batch_norm(ls_onnx *to, const ls_node *node)
{
	const ls_batch_norm_options *o = node->attributes;
	const ls_onnx_attribute attributes[] = { LS_ONNX_FLOAT_OF("epsilon", o->eps), { 0 } };
	ls_onnx_form form = ls_onnx_form_of(to, node->inputs[0]) == LS_ONNX_ROWS ? LS_ONNX_ROWS : LS_ONNX_MAPS;
	const char *x = ls_onnx_read(to, node->inputs[0], form);

	x = ls_onnx_node(to, "BatchNormalization",
			 INPUTS(x, param(to, node, 0), param(to, node, 1), param(to, node, 2), param(to, node, 3)),
			 attributes);
	if (node->input_count == 2)
		x = ls_onnx_binary(to, "Add", x, ls_onnx_read(to, node->inputs[1], form));
	ls_onnx_set(to, node->output, activate(to, node, x), form);
}

static void layer_norm(ls_onnx *to, const ls_node *node)
{
	const ls_layer_norm_options *o = node->attributes;
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", -1),
						 LS_ONNX_FLOAT_OF("epsilon", o->eps),
						 { 0 } };
	ls_onnx_form form;
	const char *x = ls_onnx_read_rows(to, node->inputs[0], &form);

	if (node->input_count == 2)
		x = ls_onnx_binary(to, "Add", x, ls_onnx_read(to, node->inputs[1], form));
	x = ls_onnx_node(to, "LayerNormalization", INPUTS(x, param(to, node, LS_WEIGHT), param(to, node, LS_BIAS)),
			 attributes);
	ls_onnx_set(to, node->output, activate(to, node, x), form);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* (channels) as (channels, 1, 1), which is added to every position. */
static const char *per_channel(ls_onnx *to, const char *vector)
{
	const int64_t axes[] = { 1, 2 };
	return ls_onnx_binary(to, "Unsqueeze", vector, ls_onnx_integers(to, axes, 2));
}

static void max_pool2d(ls_onnx *to, const ls_node *node)
{
	const ls_pool_geometry *g = node->attributes;
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS), *bias = param(to, node, LS_BIAS);
	ls_onnx_attribute attributes[4];

	window(attributes, g->kernel_h, g->kernel_w, g->stride, g->padding);
	x = ls_onnx_node(to, "MaxPool", INPUTS(x), attributes);
	x = bias ? ls_onnx_binary(to, "Add", x, per_channel(to, bias)) : x;
	ls_onnx_set(to, node->output, activate(to, node, x), LS_ONNX_MAPS);
}

static void avg_pool2d(ls_onnx *to, const ls_node *node)
{
	const ls_pool_geometry *g = node->attributes;
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS);
	ls_onnx_attribute attributes[5];

	window(attributes, g->kernel_h, g->kernel_w, g->stride, g->padding);
	attributes[3] = (ls_onnx_attribute)LS_ONNX_INT_OF("count_include_pad", 1);
	attributes[4] = (ls_onnx_attribute){ 0 };
	x = ls_onnx_node(to, "AveragePool", INPUTS(x), attributes);
	ls_onnx_set(to, node->output, x, LS_ONNX_MAPS);
}

static void global_avg_pool(ls_onnx *to, const ls_node *node)
{
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS);
	ls_onnx_set(to, node->output, ls_onnx_unary(to, "GlobalAveragePool", x), LS_ONNX_MAPS);
}

static void flatten(ls_onnx *to, const ls_node *node)
{
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", 1), { 0 } };
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_MAPS);
	ls_onnx_set(to, node->output, ls_onnx_node(to, "Flatten", INPUTS(x), attributes), LS_ONNX_ROWS);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* 0, 1, ... up to the number of tokens. */
static const char *positions(ls_onnx *to)
{
	const int64_t one = 1, zero = 0;
	const char *shape = ls_onnx_unary(to, "Shape", "input_ids");
	const char *length = ls_onnx_binary(to, "Gather", shape, ls_onnx_integers(to, &one, 1));
	const char *none = ls_onnx_integers(to, &zero, 1);
	const char *scalar_length = ls_onnx_binary(to, "Squeeze", length, none);
	const char *from = ls_onnx_binary(to, "Squeeze", none, none);
	const char *step = ls_onnx_binary(to, "Squeeze", ls_onnx_integers(to, &one, 1), none);
	return ls_onnx_node(to, "Range", INPUTS(from, scalar_length, step), NULL);
}

static void embedding(ls_onnx *to, const ls_node *node)
{
	enum { WORDS, POSITIONS, SEGMENTS };
	const char *x = ls_onnx_binary(to, "Gather", param(to, node, WORDS), "input_ids");

	x = ls_onnx_binary(to, "Add", x, ls_onnx_binary(to, "Gather", param(to, node, POSITIONS), positions(to)));
	if (node->params[SEGMENTS] != LS_NONE)
		x = ls_onnx_binary(to, "Add", x,
				   ls_onnx_binary(to, "Gather", param(to, node, SEGMENTS), "token_type_ids"));
	ls_onnx_set(to, node->output, x, LS_ONNX_SEQ);
}

/* (batch, rows, channels) -> (batch, heads, rows, width), or turned, (batch, heads, width, rows). */
static const char *heads_of(ls_onnx *to, const char *x, int64_t heads, int64_t width, int turned)
{
	const int64_t shape[] = { 0, 0, heads, width };
	const ls_onnx_attribute attributes[] = { { .name = "perm",
						   .kind = LS_ONNX_INTS,
						   .integers = { 0, 2, turned ? 3 : 1, turned ? 1 : 3 },
						   .count = 4 },
						 { 0 } };
	x = ls_onnx_binary(to, "Reshape", x, ls_onnx_integers(to, shape, 4));
	return ls_onnx_node(to, "Transpose", INPUTS(x), attributes);
}

/* -1e9 for tokens that are not there. */
static const char *padding_bias(ls_onnx *to)
{
	const int64_t axes[] = { 1, 2 };
	if (to->bias)
		return to->bias;
	const char *absent = ls_onnx_binary(to, "Sub", ls_onnx_scalar(to, 1), to->mask);
	const char *bias = ls_onnx_binary(to, "Mul", absent, ls_onnx_scalar(to, -1e9f));
	to->bias = ls_onnx_binary(to, "Unsqueeze", bias, ls_onnx_integers(to, axes, 2));
	return to->bias;
}

/* -1e9 for rows behind the one that looks. */
static const char *causal_bias(ls_onnx *to, const char *scores)
{
	const int64_t one = 1;
	const ls_onnx_attribute upper[] = { LS_ONNX_INT_OF("upper", 1), { 0 } };
	const char *ones = ls_onnx_binary(to, "Add", ls_onnx_binary(to, "Mul", scores, ls_onnx_scalar(to, 0)),
					  ls_onnx_scalar(to, -1e9f));
	const int64_t none = 0;
	const char *diagonal =
		ls_onnx_binary(to, "Squeeze", ls_onnx_integers(to, &one, 1), ls_onnx_integers(to, &none, 1));
	return ls_onnx_node(to, "Trilu", INPUTS(ones, diagonal), upper);
}

static void attention(ls_onnx *to, const ls_node *node)
{
	const ls_attention_options *o = node->attributes;
	int64_t channels = to->graph->values[node->output].channels, width = channels / o->num_heads;
	const int64_t joined[] = { 0, 0, channels };
	const ls_onnx_attribute last[] = { LS_ONNX_INT_OF("axis", -1), { 0 } };
	const ls_onnx_attribute back[] = {
		{ .name = "perm", .kind = LS_ONNX_INTS, .integers = { 0, 2, 1, 3 }, .count = 4 }, { 0 }
	};
	const char *q = heads_of(to, ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ), o->num_heads, width, 0);
	const char *k = heads_of(to, ls_onnx_read(to, node->inputs[1], LS_ONNX_SEQ), o->num_heads, width, 1);
	const char *v = heads_of(to, ls_onnx_read(to, node->inputs[2], LS_ONNX_SEQ), o->num_heads, width, 0);
	const char *scores = ls_onnx_binary(to, "MatMul", q, k);

	scores = ls_onnx_binary(to, "Mul", scores, ls_onnx_scalar(to, 1 / sqrtf((float)width)));
	if (o->is_causal)
		scores = ls_onnx_binary(to, "Add", scores, causal_bias(to, scores));
	if (to->mask)
		scores = ls_onnx_binary(to, "Add", scores, padding_bias(to));
	const char *y = ls_onnx_binary(to, "MatMul", ls_onnx_node(to, "Softmax", INPUTS(scores), last), v);
	y = ls_onnx_node(to, "Transpose", INPUTS(y), back);
	ls_onnx_set(to, node->output, ls_onnx_binary(to, "Reshape", y, ls_onnx_integers(to, joined, 3)), LS_ONNX_SEQ);
}

/* The token for every image: the first position times 0, plus it. */
static void class_token(ls_onnx *to, const ls_node *node)
{
	enum { TOKEN, TABLE };
	const int64_t zero = 0, one = 1;
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", 1), { 0 } };
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ);
	const char *first = ls_onnx_node(
		to, "Slice",
		INPUTS(x, ls_onnx_integers(to, &zero, 1), ls_onnx_integers(to, &one, 1), ls_onnx_integers(to, &one, 1)),
		NULL);
	const char *token = ls_onnx_binary(to, "Add", ls_onnx_binary(to, "Mul", first, ls_onnx_scalar(to, 0)),
					   param(to, node, TOKEN));

	x = ls_onnx_node(to, "Concat", INPUTS(token, x), attributes);
	ls_onnx_set(to, node->output, ls_onnx_binary(to, "Add", x, param(to, node, TABLE)), LS_ONNX_SEQ);
}

static void first_token(ls_onnx *to, const ls_node *node)
{
	const int64_t zero = 0;
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("axis", 1), { 0 } };
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ), *none = ls_onnx_integers(to, &zero, 1);

	x = ls_onnx_node(to, "Gather", INPUTS(x, ls_onnx_binary(to, "Squeeze", none, none)), attributes);
	ls_onnx_set(to, node->output, x, LS_ONNX_ROWS);
}

static const char *sum_rows(ls_onnx *to, const char *x)
{
	const int64_t one = 1;
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("keepdims", 0), { 0 } };
	return ls_onnx_node(to, "ReduceSum", INPUTS(x, ls_onnx_integers(to, &one, 1)), attributes);
}

/* Of the tokens that are there. */
static void mean_token(ls_onnx *to, const ls_node *node)
{
	const int64_t last = 2;
	const ls_tensor *t = &to->graph->values[node->inputs[0]];
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ);

	if (to->mask && t->domain == LS_TOKENS) {
		const char *mask = ls_onnx_binary(to, "Unsqueeze", to->mask, ls_onnx_integers(to, &last, 1));
		x = ls_onnx_binary(to, "Div", sum_rows(to, ls_onnx_binary(to, "Mul", x, mask)), sum_rows(to, mask));
	} else {
		x = ls_onnx_binary(to, "Mul", sum_rows(to, x), ls_onnx_scalar(to, 1 / (float)(t->height * t->width)));
	}
	ls_onnx_set(to, node->output, x, LS_ONNX_ROWS);
}

/* A language model predicts behind every token. */
static void masked_positions(ls_onnx *to, const ls_node *node)
{
	const int64_t last = 2;

	if (to->graph->predicts_next) {
		ls_onnx_set(to, node->output, ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ), LS_ONNX_SEQ);
		return;
	}
	const ls_onnx_attribute attributes[] = { LS_ONNX_INT_OF("batch_dims", 1), { 0 } };
	const char *places = ls_onnx_binary(to, "Unsqueeze", "masked_positions", ls_onnx_integers(to, &last, 1));
	const char *x = ls_onnx_read(to, node->inputs[0], LS_ONNX_SEQ);

	ls_onnx_set(to, node->output, ls_onnx_node(to, "GatherND", INPUTS(x, places), attributes), LS_ONNX_SEQ);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct {
	const ls_op_type *type;
	translate_fn *translate;
} rows[] = {
	{ &ls_op_pack, identity },
	{ &ls_op_conv2d, conv2d },
	{ &ls_op_linear, linear },
	{ &ls_op_linear_map, linear_map },
	{ &ls_op_embedding, embedding },
	{ &ls_op_attention, attention },
	{ &ls_op_batch_norm, batch_norm },
	{ &ls_op_layer_norm, layer_norm },
	{ &ls_op_relu, relu },
	{ &ls_op_gelu, gelu_alone },
	{ &ls_op_tanh, tanh_ },
	{ &ls_op_silu, silu },
	{ &ls_op_sigmoid, sigmoid },
	{ &ls_op_add, add },
	{ &ls_op_multiply, multiply },
	{ &ls_op_concat, concat },
	{ &ls_op_slice, slice },
	{ &ls_op_dropout, identity },
	{ &ls_op_max_pool2d, max_pool2d },
	{ &ls_op_avg_pool2d, avg_pool2d },
	{ &ls_op_global_avg_pool, global_avg_pool },
	{ &ls_op_flatten, flatten },
	{ &ls_op_class_token, class_token },
	{ &ls_op_first_token, first_token },
	{ &ls_op_mean_token, mean_token },
	{ &ls_op_masked_positions, masked_positions },
};

ls_status ls_onnx_translate(ls_onnx *to, const ls_node *node)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == node->type) {
			rows[i].translate(to, node);
			return LS_OK;
		}
	return ls_fail(LS_EUNSUPPORTED, "layer '%s': there is no '%s' in ONNX", node->name, node->type->name);
}
