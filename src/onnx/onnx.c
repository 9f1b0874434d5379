/*
 * onnx.c - the file: a model that holds the graph, whose weights follow one at a time.
 *
 * A message of protocol buffers begins with its length, so the lengths of all weights are added up before the first
 * byte is written. Memory: nodes and names, and the largest weight.
 */
#include "onnx/onnx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "onnx/emit.h"

enum { IR_VERSION = 8, OPSET = 17 };
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7 };

/* Field numbers of onnx.proto. */
enum {
	MODEL_IR = 1,
	MODEL_PRODUCER = 2,
	MODEL_PRODUCER_VERSION = 3,
	MODEL_GRAPH = 7,
	MODEL_OPSET = 8,
	MODEL_METADATA = 14
};
enum { GRAPH_NAME = 2, GRAPH_CONSTANT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

/* ---- inputs and outputs ------------------------------------------------------------------------------------------ */

/* A dimension is a number, or has a name where it is free. */
typedef struct dimension {
	int64_t value;
	const char *name;
} dimension;

static void add_value(ls_pb *graph, int field, const char *name, int type, const dimension *dims, int rank)
{
	ls_pb shape = { 0 }, tensor = { 0 }, of_type = { 0 }, value = { 0 };

	for (int i = 0; i < rank; i++) {
		ls_pb dim = { 0 };
		if (dims[i].name)
			ls_pb_text(&dim, 2, dims[i].name);
		else
			ls_pb_number(&dim, 1, dims[i].value);
		ls_pb_message(&shape, 1, &dim);
	}
	ls_pb_number(&tensor, 1, type);
	ls_pb_message(&tensor, 2, &shape);
	ls_pb_message(&of_type, 1, &tensor);
	ls_pb_text(&value, 1, name);
	ls_pb_message(&value, 2, &of_type);
	ls_pb_message(graph, field, &value);
}

static int has_segments(const ls_graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].type == &ls_op_embedding)
			return ((const ls_embedding_options *)graph->nodes[i].attributes)->segments != NULL;
	return 0;
}

static void add_inputs(ls_pb *out, const ls_graph *graph)
{
	const ls_tensor *t = &graph->values[graph->input];
	const dimension images[] = { { 0, "batch" }, { t->channels, NULL }, { t->height, NULL }, { t->width, NULL } };
	const dimension tokens[] = { { 0, "batch" }, { 0, "tokens" } }, masked[] = { { 0, "batch" }, { 0, "masked" } };

	if (graph->tokens_max == 0) {
		add_value(out, GRAPH_INPUT, "input", TYPE_FLOAT, images, 4);
		return;
	}
	add_value(out, GRAPH_INPUT, "input_ids", TYPE_INT64, tokens, 2);
	add_value(out, GRAPH_INPUT, "attention_mask", TYPE_INT64, tokens, 2);
	if (has_segments(graph))
		add_value(out, GRAPH_INPUT, "token_type_ids", TYPE_INT64, tokens, 2);
	if (graph->masked_max > 0 && !graph->predicts_next)
		add_value(out, GRAPH_INPUT, "masked_positions", TYPE_INT64, masked, 2);
}

/* Targets that were standardised for training come back in their units. */
static const char *rescale(ls_onnx *to, const ls_onnx_options *o, const char *y)
{
	int outputs = o->graph->values[o->graph->logits].channels;
	const char *scaled = ls_onnx_binary(to, "Mul", y, ls_onnx_floats(to, o->scale, outputs));

	return ls_onnx_binary(to, "Add", scaled, ls_onnx_floats(to, o->offset, outputs));
}

/* A value under a name that readers know. */
static void add_output(ls_onnx *to, ls_pb *out, const ls_onnx_options *o, int value, const char *name)
{
	const ls_tensor *t = &to->graph->values[value];
	const dimension rows[] = { { 0, "batch" }, { t->channels, NULL } };
	const dimension seq[] = { { 0, "batch" },
				  { 0, to->graph->predicts_next ? "tokens" : "masked" },
				  { t->channels, NULL } };
	ls_onnx_form form;
	const char *y = ls_onnx_read_rows(to, value, &form);
	ls_pb node = { 0 };

	if (o->scale && value == o->graph->logits)
		y = rescale(to, o, y);
	ls_pb_text(&node, 1, y);
	ls_pb_text(&node, 2, name);
	ls_pb_text(&node, 4, "Identity");
	ls_pb_message(&to->nodes, 1, &node);
	add_value(out, GRAPH_OUTPUT, name, TYPE_FLOAT, form == LS_ONNX_ROWS ? rows : seq, form == LS_ONNX_ROWS ? 2 : 3);
}

static void add_outputs(ls_onnx *to, ls_pb *out, const ls_onnx_options *o)
{
	const ls_graph *graph = to->graph;

	add_output(to, out, o, graph->logits, "logits");
	for (int i = 0; i < graph->loss_count; i++)
		if (graph->losses[i].inputs[0] != graph->logits)
			add_output(to, out, o, graph->losses[i].inputs[0], "token_logits");
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static ls_status translate(ls_onnx *to)
{
	const ls_graph *graph = to->graph;

	to->values = ls_arena_alloc(&to->arena, sizeof(*to->values) * (size_t)graph->value_count);
	if (!to->values)
		return LS_EMEMORY;
	if (graph->tokens_max > 0) {
		const ls_onnx_attribute to_float[] = { LS_ONNX_INT_OF("to", TYPE_FLOAT), { 0 } };
		to->mask = ls_onnx_node(to, "Cast", (const char *const[]){ "attention_mask", NULL }, to_float);
	}
	ls_onnx_set(to, graph->input, graph->tokens_max > 0 ? "input_ids" : "input", LS_ONNX_MAPS);
	for (int i = 0; i < graph->node_count; i++)
		LS_TRY(ls_onnx_translate(to, &graph->nodes[i]));
	return LS_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static size_t elements(const ls_onnx_constant *c)
{
	size_t count = 1;
	for (int i = 0; i < c->rank; i++)
		count *= (size_t)c->shape[i];
	return count;
}

static size_t raw_bytes(const ls_onnx_constant *c)
{
	return elements(c) * (c->integers ? sizeof(int64_t) : sizeof(float));
}

/* A tensor up to its data. */
static void tensor_head(ls_pb *out, const ls_onnx_constant *c)
{
	for (int i = 0; i < c->rank; i++)
		ls_pb_number(out, TENSOR_DIMS, c->shape[i]);
	ls_pb_number(out, TENSOR_TYPE, c->integers ? TYPE_INT64 : TYPE_FLOAT);
	ls_pb_text(out, TENSOR_NAME, c->name);
	ls_pb_head(out, TENSOR_RAW, raw_bytes(c));
}

/* Bytes of the graph's field that holds it. */
static size_t constant_bytes(const ls_onnx_constant *c)
{
	ls_pb head = { 0 };
	tensor_head(&head, c);
	size_t inner = head.bytes + raw_bytes(c);
	ls_pb_release(&head);
	return ls_pb_head_bytes(GRAPH_CONSTANT, inner) + inner;
}

typedef struct writer {
	ls_file_draft draft;
	const ls_onnx_options *options;
	float *logical; /* room for the largest weight */
} writer;

static ls_status put(writer *w, ls_pb *pb)
{
	ls_status status = pb->failed ? ls_fail(LS_EMEMORY, "no memory for %s", w->draft.path)
				      : ls_file_write(&w->draft, pb->data, pb->bytes);
	ls_pb_release(pb);
	return status;
}

static ls_status put_constant(writer *w, const ls_onnx_constant *c)
{
	ls_pb head = { 0 }, field = { 0 };

	tensor_head(&head, c);
	ls_pb_head(&field, GRAPH_CONSTANT, head.bytes + raw_bytes(c));
	ls_status status = put(w, &field);
	if (status == LS_OK)
		status = put(w, &head);
	ls_pb_release(&head);
	LS_TRY(status);
	if (!c->param)
		return ls_file_write(&w->draft, c->integers ? (const void *)c->integers : c->floats, raw_bytes(c));
	int is_buffer = c->param->role == LS_ROLE_BUFFER;
	ls_param_export(c->param, LS_STORE_WHOLE, is_buffer ? w->options->buffers : w->options->params, w->logical);
	return ls_file_write(&w->draft, w->logical, raw_bytes(c));
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static void model_head(ls_pb *out, const ls_onnx_options *o)
{
	ls_pb opset = { 0 };

	ls_pb_number(out, MODEL_IR, IR_VERSION);
	ls_pb_text(out, MODEL_PRODUCER, "lockstep");
	ls_pb_text(out, MODEL_PRODUCER_VERSION, ls_version());
	ls_pb_text(&opset, 1, "");
	ls_pb_number(&opset, 2, OPSET);
	ls_pb_message(out, MODEL_OPSET, &opset);
	for (size_t i = 0; i < o->metadata_count; i++) {
		ls_pb entry = { 0 };
		ls_pb_text(&entry, 1, o->metadata[i].key);
		ls_pb_text(&entry, 2, o->metadata[i].value);
		ls_pb_message(out, MODEL_METADATA, &entry);
	}
}

static ls_status write_all(writer *w, ls_onnx *to, ls_pb *graph, size_t graph_bytes)
{
	ls_pb head = { 0 };

	model_head(&head, w->options);
	ls_pb_head(&head, MODEL_GRAPH, graph_bytes);
	LS_TRY(put(w, &head));
	LS_TRY(put(w, graph));
	LS_TRY(put(w, &to->nodes));
	for (size_t i = 0; i < to->constant_count; i++)
		LS_TRY(put_constant(w, &to->constants[i]));
	return LS_OK;
}

/* Protocol buffers have at most 2 GB. */
static ls_status write_file(const char *path, const ls_onnx_options *options, ls_onnx *to)
{
	writer w = { .options = options };
	ls_pb graph = { 0 };
	size_t bytes = 0, largest = 0;

	ls_pb_text(&graph, GRAPH_NAME, options->name);
	add_inputs(&graph, options->graph);
	add_outputs(to, &graph, options);
	for (size_t i = 0; i < to->constant_count; i++) {
		bytes += constant_bytes(&to->constants[i]);
		largest = raw_bytes(&to->constants[i]) > largest ? raw_bytes(&to->constants[i]) : largest;
	}
	bytes += graph.bytes + to->nodes.bytes;
	w.logical = malloc(largest > 0 ? largest : 1);
	ls_status status = to->failed || graph.failed || to->nodes.failed || !w.logical
				   ? ls_fail(LS_EMEMORY, "no memory to export the model")
			   : bytes > INT_MAX
				   ? ls_fail(LS_EUNSUPPORTED, "an ONNX file has at most 2 GB, the model has %.1f",
					     (double)bytes / 1e9)
				   : ls_file_begin(&w.draft, path);
	if (status == LS_OK)
		status = ls_file_finish(&w.draft, write_all(&w, to, &graph, bytes));
	ls_pb_release(&graph);
	free(w.logical);
	return status;
}

ls_status ls_onnx_write(const char *path, const ls_onnx_options *options)
{
	ls_onnx to = { .graph = options->graph };
	ls_status status = translate(&to);

	if (status == LS_OK)
		status = write_file(path, options, &to);
	ls_pb_release(&to.nodes);
	free(to.constants);
	ls_arena_release(&to.arena);
	return status;
}
