/*
 * models.h - the table of models that come with Lockstep.
 */
#ifndef LOCKSTEP_MODELS_H
#define LOCKSTEP_MODELS_H

#include <lockstep/data.h>
#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a model of text needs to know; a zero means the default in its comment. */
typedef struct ls_text_model {
	int tokens;     /* longest sample; 0 means 128 */
	int masked;     /* tokens to be predicted in a sample; 0: the model classifies, otherwise it is pretrained. GPT
			   predicts all */
	int vocabulary; /* 0 means 30522, BERT's, or 50257, GPT-2's */
	int layers, hidden, heads, ffn; /* of models that have no size of their own: 6, 256, 4, 4 * hidden */
	int positions;   /* rows of the position embedding: 256, or more where samples are longer; of GPT 1024 */
	int lora;        /* of GPT: rank of adapters beside query, key and value, which alone are trained; 0: none */
	int reserved[7]; /* 0 */
} ls_text_model;

typedef struct ls_model_options {
	size_t size;                 /* set by LS_MODEL_OPTIONS_INIT */
	const char *name;            /* a row of the table: "resnet18" */
	int channels, height, width; /* of a sample; 0 means 1, 28, 28 */
	int classes;                 /* 0 means 10 */
	float dropout;               /* where the model has a place for it */
	ls_text_model text;
	ls_task task; /* which loss: cross-entropy, binary cross-entropy of each label, or mean squared error */
	double label_smoothing; /* of the cross-entropy, as PyTorch has it; 0: none */
} ls_model_options;
#define LS_MODEL_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_model_options), .name = NULL, .channels = 1, .height = 28, .width = 28,              \
		.classes = 10, .dropout = 0                                                                            \
	}

/* Build a finished graph; an unknown name is an error that suggests the nearest. */
LS_API ls_status ls_model_build(ls_graph **out, const ls_model_options *options);

/* The table: row i, or NULL past the end. */
typedef struct ls_model_row {
	const char *name;
	const char *summary;
	int is_text;       /* takes tokens, not images */
	int pretrains;     /* can predict masked tokens as well as a class */
	int has_sizes;     /* its layers, hidden, heads, ffn and positions can be chosen */
	int predicts_next; /* predicts the next token, at every position of a text */
} ls_model_row;
LS_API const ls_model_row *ls_model_row_at(size_t i);
LS_API const ls_model_row *ls_model_row_of(const char *name); /* NULL: there is no such model */

#ifdef __cplusplus
}
#endif
#endif
