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
 * Threads: one at a time per model, but for making samples. Several models may be used side by side. In a process that
 * was forked, a model of its parent starts threads of its own.
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <lockstep/data.h>
#include <lockstep/graph.h>
#include <lockstep/models.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_model ls_model; /* ls_train() trains one, too: options.model_handle */

/* ---- from where -------------------------------------------------------------------------------------------------- */

typedef struct ls_model_load_options {
	size_t size;        /* set by LS_MODEL_LOAD_OPTIONS_INIT */
	const char *source; /* a run directory (its newest checkpoint) or a .safetensors file */

	/* What the run or the file's metadata says where it is NULL or 0. */
	const char *model;           /* name */
	const char *input;           /* shape of an image, "3x224x224"; else that of the data it was trained on */
	const char *data, *data_dir; /* take the shape of this dataset's samples */
	int64_t seq_len, layers, width, heads, ffn, max_len;
	const char *vocab; /* text: vocab.txt, of GPT a directory with vocab.json; NULL: the run's own copy, or the
				     * one beside the data */
	int cased, replace_invalid; /* text: keep case and accents; drop bytes that are not UTF-8, else an error */
	const char *mean,
		*deviation; /* images: "0.485,0.456,0.406", of pixels from 0 to 1, a number per channel or one */
	const char *labels; /* file with the name of each class on a line; NULL: names of the dataset, if any */

	int64_t devices; /* teams of threads that share samples; 0: one per core */
	int64_t threads; /* per device; 0: 1 */
	int best;        /* of a run: the weights of its best evaluation (train with keep_best), not the newest */
	int unused;      /* fills the struct up; stays 0 */
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

/* ---- what it is -------------------------------------------------------------------------------------------------- */

typedef struct ls_model_facts {
	const char *name;            /* "resnet18"; NULL: of the program's own graph. Borrowed */
	int channels, height, width; /* of an image; of a table's row: its features, 1, 1; 0: text */
	int tokens_max, vocabulary;  /* of text; 0: images or rows */
	int64_t outputs;             /* classes, labels or numbers */
	uint64_t parameters;         /* trained numbers */
	uint64_t fingerprint;        /* of parameters and running statistics, as ls_train() reports it */
	int predicts_next;           /* a language model: its outputs are the tokens that may come next */
	ls_task task;                /* what its outputs are: scores of classes, of labels, or numbers */
	uint64_t masked_max;         /* text: most tokens that a sample can have to predict; 0: the loss is of none */
	/* "fp32", "bf16", "bf16-amx", or "bf16-layers" for bf16 models of earlier versions. Borrowed */
	const char *precision;
	uint64_t reserved[5]; /* 0 */
} ls_model_facts;
LS_API ls_status ls_model_describe(const ls_model *model, ls_model_facts *out);

/* What it computes, layer by layer, for lockstep/inspect.h. Borrowed: it lives as long as the model. NULL: there is no
 * such model. */
LS_API const ls_graph *ls_model_graph(const ls_model *model);

/* Normalisation of the images that it was trained on; NULL: not known, or text. Borrowed. */
LS_API const ls_normalisation *ls_model_normalisation(const ls_model *model);

/* The name of class i, "very negative", or of a table's target; NULL: not known. Borrowed. */
LS_API const char *ls_model_class_name(const ls_model *model, int64_t i);

/* A column that ls_model_read_row() reads, of a model that was trained on a table of numbers and categories. */
typedef struct ls_model_column {
	const char *name;              /* borrowed, as are the categories */
	const char *const *categories; /* (category_count) values of the training part; NULL: a column of numbers */
	uint64_t category_count;
	uint64_t reserved[4]; /* 0 */
} ls_model_column;
LS_API int ls_model_column_at(const ls_model *model, size_t i, ls_model_column *out); /* 0 past the end, or no table */

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* From files and text to what the model takes. Several threads may make samples of one model at a time, also while it
 * predicts. */

#define LS_IMAGE_PIXELS_MAX (1 << 26)

typedef struct ls_image_options {
	size_t size;         /* set by LS_IMAGE_OPTIONS_INIT */
	const char *name;    /* of the file, for messages */
	ls_resize resize;    /* of an image of another size */
	uint64_t pixels_max; /* larger ones are refused before memory is taken */
} ls_image_options;
#define LS_IMAGE_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_image_options), .name = "image", .pixels_max = LS_IMAGE_PIXELS_MAX                   \
	}

/*
 * The bytes of a PNG or JPEG file to a sample (C, H, W), normalised. Colour becomes grey by 0.299 R + 0.587 G +
 * 0.114 B and grey becomes colour by three equal channels, as the model wants it; transparency is dropped. An
 * image of the model's height and width is taken pixel by pixel, others are scaled by a triangle filter
 * (bilinear, without aliasing).
 */
LS_API ls_status ls_model_read_image(const ls_model *model, const void *bytes, size_t count,
				     const ls_image_options *options, float *image);

/* Pixels (C, H, W) from 0 to 255, in place: (pixel / 255 - mean) / deviation. A number outside that range, or none, is
 * an error that says which. */
LS_API ls_status ls_model_normalise(const ls_model *model, float *pixels);

/* A text, UTF-8, to [CLS] tokens [SEP]: tokens and length of `out`, and its segments unless they are NULL; the arrays
 * are the caller's, of tokens_max elements. *cut, unless it is NULL: tokens that were too many and left out. For a
 * language model: the tokens alone, the last ones of a text that is too long. */
LS_API ls_status ls_model_tokenize(const ls_model *model, const char *text, size_t bytes, ls_text_sample *out,
				   int *cut);

/* Values of columns, as a CSV file has them, to the features of a model that was trained on a table of
 * numbers and categories: (channels) floats. A column that is not named has no value; one that the model does
 * not know is not looked at. */
LS_API ls_status ls_model_read_row(const ls_model *model, const char *const *names, const char *const *values,
				   size_t count, float *features);

/* ---- prediction -------------------------------------------------------------------------------------------------- */

/* Images (count, C, H, W), normalised as the model wants them, or rows of features, to logits (count, outputs). A value
 * that is NaN or infinite is an error, LS_EINVALID, that says which. */
LS_API ls_status ls_model_predict(ls_model *model, const float *images, int64_t count, float *logits);

/* The same of text: tokens and length of each sample; segments may be NULL. Masked positions and labels are not looked
 * at. The outputs of a language model are those of the token after the last. */
LS_API ls_status ls_model_predict_text(ls_model *model, const ls_text_sample *samples, int64_t count, float *logits);

/* Logits (rows, outputs) to what they stand for, in place: probabilities of classes, which add up to 1, of labels, each
 * from 0 to 1, or numbers in the units of the targets. */
LS_API ls_status ls_model_interpret(const ls_model *model, float *logits, int64_t rows);

/* Softmax of each row, in place. */
LS_API void ls_softmax(float *logits, int64_t rows, int64_t outputs);

/* ---- parameters -------------------------------------------------------------------------------------------------- */

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

/* ---- to where ---------------------------------------------------------------------------------------------------- */

/* A safetensors file that ls_model_load() and PyTorch read. */
LS_API ls_status ls_model_save(const ls_model *model, const char *path);

/*
 * The same for other programs, which know nothing of adapters (LoRA): they are added to the weights that they adapt,
 * W + (B A)^T rounded to floats, and left out. Names and shapes are those of Hugging Face or torchvision. LS_EINVALID:
 * `path` is the file that the model was loaded from, which is never replaced.
 */
LS_API ls_status ls_model_export_safetensors(const ls_model *model, const char *path);

/*
 * An ONNX file (opset 17). Images are the input "input", float (batch, C, H, W), normalised with the constants in the
 * file's metadata ("mean", "deviation"). Text is "input_ids", "attention_mask" and, of models that have segments,
 * "token_type_ids", int64 (batch, tokens); a model for pretraining also takes "masked_positions", int64 (batch,
 * masked). The outputs are "logits", and of pretraining "token_logits". Batch, tokens and masked are free.
 *
 * The file computes in fp32 whatever the model computes in, which the metadata name ("precision"). The logits of a
 * model in fp32 are Lockstep's but for rounding, within 1e-5 of the largest one (of 1, where all are smaller); those
 * of one in bf16 differ by about 0.1 % of the largest. LS_EINVALID: `path` is the file that the model was loaded from,
 * which is never replaced.
 */
LS_API ls_status ls_model_export_onnx(const ls_model *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
