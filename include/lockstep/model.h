/*
 * model.h - a model in memory: a graph and its weights. Load, predict, look at parameters and change them, save.
 *
 *     ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
 *     options.source = "runs/first";
 *     ls_model *model = NULL;
 *     if (ls_model_load(&model, &options)) { puts(ls_last_error()); return 1; }
 *     float logits[10];
 *     if (ls_model_predict(model, image, 1, logits)) { puts(ls_last_error()); return 1; }
 *     ls_model_free(model);
 *
 * What a sample gives has the same bits whatever is predicted with it, on any number of devices and threads.
 *
 * Threads: one at a time per model. Several models may be used side by side.
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <lockstep/data.h>
#include <lockstep/graph.h>
#include <lockstep/models.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_model ls_model; /* ls_train() trains one, too: options.in_memory */

/* ---- from where ---------------------------------------------------------------------------------------------------- */

typedef struct ls_model_load_options {
	size_t size;        /* set by LS_MODEL_LOAD_OPTIONS_INIT */
	const char *source; /* a run directory (its newest checkpoint) or a .safetensors file */

	/* What the run or the file's metadata says where it is NULL or 0. */
	const char *model;           /* name */
	const char *input;           /* shape of an image, "3x224x224"; else that of the data it was trained on */
	const char *data, *data_dir; /* take the shape of this dataset's samples */
	int64_t seq_len, layers, width, heads, ffn, max_len;

	int64_t devices; /* teams of threads that share samples; 0: one per core */
	int64_t threads; /* per device; 0: 1 */
} ls_model_load_options;
#define LS_MODEL_LOAD_OPTIONS_INIT                                                                                     \
	{                                                                                                              \
		.size = sizeof(ls_model_load_options)                                                                  \
	}

LS_API ls_status ls_model_load(ls_model **out, const ls_model_load_options *options);

/* One of the models that come with Lockstep, with initial weights: those of `lockstep train` with the same seed. */
LS_API ls_status ls_model_new_named(ls_model **out, const ls_model_options *options, uint64_t seed);

/* Of your own graph, finished, with initial weights; on success the model owns the graph. */
LS_API ls_status ls_model_new(ls_model **out, ls_graph *graph, uint64_t seed);
LS_API void ls_model_free(ls_model *model); /* harmless on NULL */

/* Where it predicts from now on, as in ls_model_load_options. */
LS_API ls_status ls_model_set_devices(ls_model *model, int64_t devices, int64_t threads);

/* ---- what it is ---------------------------------------------------------------------------------------------------- */

typedef struct ls_model_facts {
	const char *name;            /* "resnet18"; NULL: of the program's own graph. Borrowed */
	int channels, height, width; /* of an image; 0: text */
	int tokens_max, vocabulary;  /* of text; 0: images */
	int64_t outputs;             /* classes */
	uint64_t parameters;         /* trained numbers */
	uint64_t fingerprint;        /* of parameters and running statistics, as ls_train() reports it */
	uint64_t reserved[8];        /* 0 */
} ls_model_facts;
LS_API ls_status ls_model_describe(const ls_model *model, ls_model_facts *out);

/* Normalisation of the images that it was trained on; NULL: not known, or text. Borrowed. */
LS_API const ls_normalisation *ls_model_normalisation(const ls_model *model);

/* ---- prediction ---------------------------------------------------------------------------------------------------- */

/* Images (count, C, H, W), normalised as the model wants them, to logits (count, outputs). */
LS_API ls_status ls_model_predict(ls_model *model, const float *images, int64_t count, float *logits);

/* The same of text: tokens and length of each sample; segments may be NULL. Masked positions and labels are not looked
 * at. */
LS_API ls_status ls_model_predict_text(ls_model *model, const ls_text_sample *samples, int64_t count, float *logits);

/* Softmax of each row, in place. */
LS_API void ls_softmax(float *logits, int64_t rows, int64_t outputs);

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

typedef struct ls_model_param {
	const char *name; /* "conv1.weight"; borrowed */
	int rank;
	int64_t shape[4]; /* as PyTorch has it */
	uint64_t elements;
	int is_trained;       /* 0: running statistics */
	uint64_t reserved[4]; /* 0 */
} ls_model_param;
LS_API int ls_model_param_at(const ls_model *model, size_t i, ls_model_param *out);         /* 0 past the end */
LS_API int ls_model_param_of(const ls_model *model, const char *name, ls_model_param *out); /* 0: there is none */

/* All elements in the row-major order of the shape. Setting refuses numbers that are not finite. */
LS_API ls_status ls_model_get(const ls_model *model, const char *name, float *values, uint64_t elements);
LS_API ls_status ls_model_set(ls_model *model, const char *name, const float *values, uint64_t elements);

/* ---- to where ------------------------------------------------------------------------------------------------------ */

/* A safetensors file that ls_model_load() and PyTorch read. */
LS_API ls_status ls_model_save(const ls_model *model, const char *path);

/*
 * An ONNX file (opset 17). Images are the input "input", float (batch, C, H, W), normalised with the constants in the
 * file's metadata ("mean", "deviation"). Text is "input_ids", "attention_mask" and, of models that have segments,
 * "token_type_ids", int64 (batch, tokens); a model for pretraining also takes "masked_positions", int64 (batch,
 * masked). The outputs are "logits", and of pretraining "token_logits". Batch, tokens and masked are free.
 */
LS_API ls_status ls_model_export_onnx(const ls_model *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
