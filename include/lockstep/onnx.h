/*
 * onnx.h - write a trained model as an ONNX file, which onnxruntime and others run.
 *
 *     ls_export_options options = LS_EXPORT_OPTIONS_INIT;
 *     options.source = "runs/first";
 *     options.onnx = "first.onnx";
 *     if (ls_export(&options)) { puts(ls_last_error()); return 1; }
 *
 * Images are the input "input", float (batch, C, H, W), normalised with the constants in the file's metadata ("mean",
 * "deviation"). Text is "input_ids", "attention_mask" and, of models that have segments, "token_type_ids", int64 (batch,
 * tokens); a model for pretraining also takes "masked_positions", int64 (batch, masked). The outputs are "logits", and
 * of pretraining "token_logits". Batch, tokens and masked are free. Opset 17.
 */
#ifndef LOCKSTEP_ONNX_H
#define LOCKSTEP_ONNX_H

#include <lockstep/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_export_options {
	const char *source; /* a run directory (its newest checkpoint) or a .safetensors file */
	const char *onnx;   /* the file to write */

	/* What the run or the file's metadata says where it is NULL or 0. */
	const char *model;
	const ls_graph *graph; /* your own; wins over model */
	const char *input;     /* shape of an image, "3x224x224"; NULL: what the weights or the run's data say */
	const char *data, *data_dir;
	int64_t seq_len, layers, width, heads, ffn, max_len;
} ls_export_options;
#define LS_EXPORT_OPTIONS_INIT                                                                                         \
	{                                                                                                              \
		0                                                                                                      \
	}

LS_API ls_status ls_export(const ls_export_options *options);

#ifdef __cplusplus
}
#endif
#endif
