/*
 * onnx.h - a model as an ONNX file, for onnxruntime and others.
 *
 * Images are the input "input", float (batch, C, H, W), normalised as the model was trained. Text is "input_ids",
 * "attention_mask" and, where the model has segments, "token_type_ids", int64 (batch, tokens), padded with any id where
 * the mask is 0; a model for pretraining also takes "masked_positions", int64 (batch, masked). The outputs are "logits"
 * and, of pretraining, "token_logits"; of regression "logits" are in the units of the targets. Batch and tokens are
 * free dimensions.
 */
#ifndef LS_ONNX_ONNX_H
#define LS_ONNX_ONNX_H

#include "graph/graph.h"

typedef struct ls_onnx_pair {
	const char *key, *value;
} ls_onnx_pair;

typedef struct ls_onnx_options {
	const ls_graph *graph;         /* finished */
	const float *params, *buffers; /* its stores */
	const char *name;              /* of the model */
	const float *scale, *offset;   /* (outputs) "logits" are outputs * scale + offset; NULL: as they are */
	const ls_onnx_pair *metadata;
	size_t metadata_count;
} ls_onnx_options;

/* Whole or absent. An operator without a counterpart in ONNX is LS_EUNSUPPORTED, by name. */
ls_status ls_onnx_write(const char *path, const ls_onnx_options *options);

#endif
