/*
 * train.h - train a model, evaluate it, and the table of settings both share.
 */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/data.h>
#include <lockstep/graph.h>
#include <lockstep/hooks.h>
#include <lockstep/names.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_THREADS_MAX 1024

/* The default micro-batch (docs/decisions/0017). */
#define LS_MICRO_BATCH 32

/*
 * Every setting of a training run. Start from LS_TRAIN_OPTIONS_INIT and change what you need, by field or by name
 * with ls_train_options_set(). Strings are borrowed and must outlive the run.
 */
typedef struct ls_train_options {
	size_t size; /* set by LS_TRAIN_OPTIONS_INIT */
	/* what: by name, or your own objects (which win; the library does not free them) */
	const char *model;
	const char *data;
	ls_graph *graph; /* its parameters are laid out for the optimizer */
	struct ls_model
		*model_handle; /* a model of model.h: the run starts from the weights it has and leaves it the trained
				     * ones. Wins over model, its sizes and dropout */
	const ls_dataset *train_set, *test_set;
	const char *data_dir;  /* where the dataset's files are; NULL: the cache */
	uint64_t samples;      /* size of a generated training set, or a cap; 0: all */
	uint64_t test_samples; /* the same for the test set */
	float dropout;

	/* text: how it is read, and the size of a model that has no size of its own; 0: the default */
	const char *vocab;                 /* vocab.txt; NULL: that of init's run, else the one beside the data */
	int cased;                         /* keep case and accents */
	int64_t seq_len;                   /* tokens of the longest sample */
	int phrases;                       /* sst5: train on every phrase of every tree */
	int replace_invalid;               /* go on where text is not UTF-8 */
	int64_t layers, width, heads, ffn; /* of transformer: 6, 256, 4, 4 * width */
	int64_t max_len;                   /* rows of the position embedding: 256, or the longest sample's */

	/* how long */
	int64_t epochs;     /* ignored when steps is set */
	int64_t steps;      /* 0: by epochs */
	double to_accuracy; /* end after the first evaluation with this test accuracy; 0: never */

	/* How many samples: batch and micro_batch decide the trained bits, however many devices there are.
	 * batch_per_device is the form of published tables and excludes the other two. */
	int64_t batch;            /* samples per step, over all devices of all nodes */
	int64_t micro_batch;      /* samples that go through the model at a time; 0: the batch in equal parts of
				   * at most LS_MICRO_BATCH */
	int64_t batch_per_device; /* N: batch = N * devices, micro_batch = N; 0: not used */

	/* the update */
	const char *optimizer; /* "adam": a row of docs/optimizers.md */
	double lr, momentum, beta1, epsilon, weight_decay;
	double beta2; /* 0: the optimizer's default */
	int nesterov;
	int lr_scale_workers;  /* multiply lr by the number of devices, as published runs do */
	const char *schedule;  /* "wsd" (warm-up, stable, decay), "constant", "step", "cosine", "linear" */
	double lr_min;         /* where wsd, cosine and linear end */
	int64_t lr_step_every; /* step: every N steps ... */
	double lr_step_factor; /* ... multiply by this */
	int64_t warmup;        /* steps of linear warm-up */
	double clip_norm;      /* 0: no clipping */
	const char *freeze;    /* "conv1.*,layer1.*": parameters with such names keep their values, as do the running
				* statistics of batch norms all of whose parameters do; NULL: all are trained */
	uint64_t seed;

	/* where it runs */
	int64_t devices;   /* of this node; each is a team of threads that computes micro-batches of its own. 0: one per
			    * core, but no more than have a micro-batch in a step */
	int64_t threads;   /* per device; 0: share the cores equally between the devices */
	const char *pin;   /* threads stay on cores of their own: "on", "off", "auto" (when there are enough) */
	const char *hosts; /* "lm1:3,lm6:2": start nodes there, with 3 and 2 devices; NULL: this node alone */
	const char *strategy; /* how nodes exchange gradients and parameters: a row of ls_strategy_at() */
	int64_t servers;      /* ps, ps-async: number of parameter servers, which compute nothing; 0: one */
	int64_t staleness;    /* ps-async: steps a worker may be ahead of the slowest; 0: 4 */
	const char *wire;     /* numbers between nodes: "fp32", or "bf16" for half the bytes */
	const char *share;    /* micro-batches per node: "auto" (by speed), "equal" (by devices), "3:2:1" */
	int64_t bucket_bytes; /* gradient that is sent together; 0: what measured best */
	int64_t timeout;      /* seconds a node may be silent before the others declare it dead */
	int64_t audit_every;  /* steps between comparisons of all nodes' parameters; 0: never */

	/* what is kept and shown */
	const char *run; /* run directory; NULL: nothing is written */
	int resume;      /* continue the run directory's newest checkpoint, with the run's settings (ls_train_recall) */
	const char *init;    /* start from these weights: a safetensors file, or a run's newest */
	int64_t ckpt_every;  /* steps; 0: at the end of every epoch */
	int64_t keep;        /* newest checkpoints kept */
	int64_t log_every;   /* steps between log lines */
	int64_t eval_every;  /* epochs between evaluations; 0: never */
	int64_t trace_steps; /* steps of a trace */
	int trace;           /* write RUN/trace.json, the first steps as a timeline */
	int plan_memory;     /* print the memory plan and stop before training */
	int quiet;           /* errors only */

	/* how a program follows the run and ends it (hooks.h); both may be NULL */
	const ls_train_hooks *hooks;
	ls_stop *stop;

	uint64_t given[2]; /* which settings ls_train_options_set() has set: bit i is row i of ls_train_setting_at() */

	/* folders of images, as in ls_dataset_options */
	int64_t image_size; /* side of the squares that images are scaled to; 0: the size of the first image */
	const char *cache;  /* keep decoded images: "auto", "off", or a folder */

	const char *augment;    /* "crop:4,flip": random changes of training images, in this order; "none" */
	double label_smoothing; /* of the cross-entropy, as PyTorch has it; 0: none */
	/* gpt: train adapters of this rank beside the layers of query, key and value, and nothing else (LoRA); 0: train
	 * all parameters */
	int64_t lora;

	/* tables: CSV, TSV and JSONL files, as in ls_dataset_options */
	const char *target; /* names of the columns to predict, "price" or "a,b"; NULL: "target" or "label" */
	const char *task;   /* "classification", "multi-label", "regression", or "auto": by the values of the targets */
	const char *text_column; /* the column of text, for models of text; NULL: "text" */
	uint64_t skip_bad;       /* rows or files that may be left out because they cannot be read */

	/* the loss of models that come with Lockstep */
	const char *class_weights; /* "auto" (inverse to how often a class occurs), "0.5,2,1", or "none" */
	const char *loss;          /* "auto" (by the task), "cross-entropy", "bce" (binary cross-entropy) or "mse" */

	/* Evaluations, and what follows from them. The best is that with the best `keep_best`, or with the
	 * least loss where that is NULL. */
	int64_t eval_steps;      /* evaluate every N steps and not by epochs; 0: by eval_every */
	const char *keep_best;   /* keep the best weights as RUN/best.safetensors, by "loss", "accuracy", ... */
	int64_t early_stop;      /* end after N evaluations without a better one; 0: never */
	double early_stop_delta; /* better by more than this */
	double ema;              /* decay of a moving average of parameters, which is evaluated and saved; 0: none */

	/* how products are computed */
	/* "fp32", "auto", or operands in bf16 and sums in fp32: "bf16", "bf16-amx", "bf16-layers" */
	const char *precision;

	/* how the command starts nodes (ls_launch_elastic()); to a node, that it was started like that */
	const char *discover;
	int64_t min_nodes, max_restarts;
	int elastic;
	int unused; /* fills the struct up; stays 0 */

	/* how convolutions are computed: "direct"; "winograd": 3x3 layers of stride 1 by Winograd's algorithm, which
	 * has fewer products and other bits; "auto": by the shape of each layer, the same on every machine */
	const char *conv;

	int64_t snapshot_every; /* steps between snapshots in memory; 0: with `elastic` by their cost, else none */
} ls_train_options;

#define LS_TRAIN_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_train_options), .model = "resnet18", .data = "mnist", .epochs = 1, .batch = 128,     \
		.optimizer = "adam", .lr = 0.001, .momentum = 0.9, .beta1 = 0.9, .epsilon = 1e-8, .schedule = "wsd",   \
		.lr_step_factor = 0.1, .seed = 1, .pin = "auto", .strategy = "allreduce", .wire = "fp32",              \
		.share = "auto", .timeout = 30, .audit_every = 1000, .keep = 2, .log_every = 200, .eval_every = 1,     \
		.trace_steps = 50, .cache = "auto", .augment = "none", .task = "auto", .class_weights = "none",        \
		.loss = "auto", .precision = "fp32", .min_nodes = 1, .max_restarts = 100, .conv = "auto"               \
	}

typedef enum ls_setting_kind {
	LS_SETTING_STRING, /* const char * */
	LS_SETTING_INT,    /* int64_t */
	LS_SETTING_SEED,   /* uint64_t */
	LS_SETTING_REAL,   /* double */
	LS_SETTING_FLOAT,  /* float */
	LS_SETTING_FLAG,   /* int, no argument */
	LS_SETTING_COUNT   /* uint64_t, written 72000000 or 72M */
} ls_setting_kind;

/* Flags of a row. */
enum {
	LS_SETTING_BINDS = 1,  /* changes the trained bits: a resume must not alter it */
	LS_SETTING_COMMON = 2, /* most jobs want it: in the short help */
	LS_SETTING_NOT_0 = 4,  /* a field of 0 means the default: as text, 0 is refused */
	LS_SETTING_ONCE = 8    /* concerns one start of a run: a resume does not take it over */
};

/* One row per setting: the command line, run.json and the check of a resumed run are all made from this table. */
typedef struct ls_setting {
	const char *name; /* "lr-step-every": the long option without dashes */
	char key;         /* short option, or 0 */
	const char *arg;  /* placeholder in help, "N"; NULL for a flag */
	const char *
		group; /* heading in help: "Model and data", "Text", "Length", "Update", "Machine", "Nodes", "Output" */
	const char *help; /* {values} in it stands for the names of ls_setting_value_at() */
	ls_setting_kind kind;
	size_t offset;   /* in ls_train_options */
	double min, max; /* accepted range of numbers, both ends included */
	int marks;       /* LS_SETTING_BINDS ... */
} ls_setting;

/* Set the field that `row` describes from text. Works on any struct with such a table (the command's other tables are
 * made of the same rows). Malformed numbers and values out of range are errors that name the option. */
LS_API ls_status ls_setting_set(const ls_setting *row, void *options, const char *value);

/* The field as text, "0.001" (as short as reads back the same); "" for a string that is NULL. */
LS_API void ls_setting_format(const ls_setting *row, const void *options, char *out, size_t size);

/* A name that a setting can have as its value, with a line of help. */
typedef struct ls_setting_value {
	const char *name, *summary;
} ls_setting_value;

/* Value i of a setting whose values have names: models, datasets, optimizers, schedules, strategies, wires, ...
 * Returns 0 past the end, and for settings that are numbers, files or texts. Rows of other tables with the name of
 * such a setting have its values. */
LS_API int ls_setting_value_at(const ls_setting *row, size_t i, ls_setting_value *out);

/* A name that an option has in other trainers: what it is here, and what is different about it. */
typedef struct ls_option_alias {
	const char *name, *option, *note; /* option is NULL where there is none, note where there is no more to say */
} ls_option_alias;
LS_API const ls_option_alias *ls_option_alias_at(size_t i); /* NULL past the end */

/* The hint after "unknown option '--typed'" of a command with options `names`: the option here that a name of other
 * trainers stands for, or the nearest name; "" when nothing is near. */
LS_API void ls_option_explain(char *out, size_t size, const char *typed, const char *const *names, size_t count);

/* Row i of the settings of a training run, or NULL past the end. */
LS_API const ls_setting *ls_train_setting_at(size_t i);
LS_API const ls_setting *ls_train_setting_of(const char *name); /* NULL: there is no such setting */

/* Whether ls_train_options_set() has set it, to whatever value; `row` is one of ls_train_setting_at(). */
LS_API int ls_train_setting_is_given(const ls_train_options *options, const ls_setting *row);

/* How nodes exchange gradients and parameters, one row per strategy. */
typedef struct ls_strategy_info {
	const char *name, *title, *summary; /* "ps"; "PS", as tables and plots call it; a line of help */
	int has_servers;                    /* the last nodes own all shards and compute nothing */
	int keeps_bits;                     /* with an exact wire the trained bits are those of one node */
	const char *unplanned;              /* why ls_forecast_make() cannot simulate it; NULL: it can */
} ls_strategy_info;
LS_API const ls_strategy_info *ls_strategy_at(size_t i);         /* NULL past the end */
LS_API const ls_strategy_info *ls_strategy_of(const char *name); /* NULL: there is no such strategy between nodes */

/* Set one option from text, as the command line does: unknown names (nearest suggested), malformed numbers and values
 * out of range are errors. `value` is NULL for a flag. */
LS_API ls_status ls_train_options_set(ls_train_options *options, const char *name, const char *value);

/*
 * The settings that a run was last started with, from its directory. With `resume` ls_train() takes these, but for
 * those that are given: by ls_train_options_set(), or as a field that is not the default. What is given and changes the
 * trained bits must be the same.
 */
typedef struct ls_train_stored {
	void *owner; /* of its strings */
	ls_train_options options;
} ls_train_stored;
#define LS_TRAIN_STORED_INIT                                                                                           \
	{                                                                                                              \
		.owner = NULL, .options = LS_TRAIN_OPTIONS_INIT                                                        \
	}
LS_API ls_status ls_train_recall(ls_train_stored *out, const char *run);
LS_API void ls_train_stored_release(ls_train_stored *stored); /* harmless when it is zero */

typedef struct ls_train_result {
	int64_t steps;        /* steps done, those before a resume included */
	uint64_t fingerprint; /* xxh64 of the trained parameters, in the order and layout of the checkpoint */
	double train_loss;    /* mean of the last epoch or part of one */
	double test_loss, test_accuracy; /* of the last weights; NaN when those were not evaluated */
	double samples_per_s;            /* median of the last 512 steps of this process, its first three excluded */
	double first_step_s;             /* from the call to the end of the first step */
	int64_t best_step;               /* of the best evaluation, where keep_best or early_stop is set; 0: none */
	double best;                     /* its metric */
	int64_t stopped_early;           /* 1: early_stop ended the run */
	uint64_t reserved[5];            /* 0 */
} ls_train_result;

/*
 * Train. Prints log lines in the published form on stdout ("Step200: 100.71 data/sec, loss 0.1234") under a progress
 * line on a terminal, and last "parameters xxh64 <16 hex digits>". `result` may be NULL. Returns LS_EINTERRUPTED after
 * options.stop or ls_train_stop(), with a checkpoint written where there is a run directory. With plan_memory the
 * result is zeros, its losses and accuracy NaN.
 */
LS_API ls_status ls_train(const ls_train_options *options, ls_train_result *result);

/* Ask every ls_train() that runs in this process to finish its step, write a checkpoint and return, and every ls_eval()
 * to return; an evaluation is abandoned. Safe in a signal handler. For one run of several: options.stop. */
LS_API void ls_train_stop(void);

/* A confusion matrix: samples by label and prediction. */
typedef struct ls_class_counts {
	int64_t classes;
	uint64_t samples;
	int64_t top;          /* 5, or the number of classes if it is smaller */
	uint64_t top_correct; /* samples whose class is among the `top` most probable */
	uint64_t
		*confusion; /* (classes, classes) samples by label and prediction; freed by ls_class_counts_release() */
	char **names;       /* (classes) freed with it; NULL: the data has no names for its classes */
	uint64_t reserved[4]; /* 0 */
} ls_class_counts;

/* Scores of one class; 0 where the denominator is 0. */
typedef struct ls_class_score {
	uint64_t samples, predicted, correct; /* with this label; predicted as it; both */
	double precision;                     /* correct / predicted */
	double recall;                        /* correct / samples */
	double f1;                            /* their harmonic mean */
	uint64_t reserved[4];                 /* 0 */
} ls_class_score;

/* 0: there is no class i. */
LS_API int ls_class_counts_at(const ls_class_counts *counts, int64_t i, ls_class_score *out);
LS_API void ls_class_counts_release(ls_class_counts *counts); /* harmless on NULL and twice */

/* What an evaluation says about one output of regression, or about one of several labels. */
typedef struct ls_target_score {
	double mae, rmse, r2;         /* regression */
	uint64_t support, predicted;  /* labels: samples that have it, and that are said to */
	double precision, recall, f1; /* 0 where they are not defined */
} ls_target_score;

/* Zero, or of all outputs; ls_target_scores_release() frees it. */
typedef struct ls_target_scores {
	ls_task task;
	int64_t outputs; /* 0: the data has classes */
	ls_target_score *score;
	char **names; /* (outputs) NULL: they have none */
} ls_target_scores;
LS_API void ls_target_scores_release(ls_target_scores *scores); /* harmless on NULL and when it is zero */

typedef struct ls_eval_options {
	size_t size;           /* set by LS_EVAL_OPTIONS_INIT */
	const char *source;    /* a run directory (its newest checkpoint) or a .safetensors file */
	const char *model;     /* for a file; NULL: what its metadata says */
	const ls_graph *graph; /* your own; wins over model */
	const char *data;      /* NULL: the run's */
	const ls_dataset *set;
	const char *data_dir; /* NULL: the run's when data is, else the cache */
	uint64_t samples;     /* 0: as many as the run tested on when data is its own, else all */

	/* text: what a run or a file's metadata says where it is NULL or 0, else the default */
	const char *vocab; /* NULL: the run's own copy, or the one beside the data */
	int cased, replace_invalid;
	int64_t seq_len, layers, width, heads, ffn, max_len;

	int64_t batch;      /* samples at a time; does not change the accuracy */
	int64_t devices;    /* teams of threads that share the samples; 0: one per core */
	int64_t threads;    /* of a device */
	const char *logits; /* also write the model's outputs, and what they are of, as safetensors to this file */
	int quiet;
	int unused;               /* fills the struct up; stays 0 */
	ls_class_counts *counts;  /* filled in by ls_eval(), for up to 4,096 classes; NULL: nothing is counted */
	const char *metrics;      /* also write the counts and what follows from them as JSON to this file */
	const ls_stop *stop;      /* ends it (lockstep/hooks.h); NULL: only ls_train_stop() does */
	ls_target_scores *scores; /* filled in by ls_eval() where the data has float targets; NULL: not wanted */
	int best;                 /* the weights of a run's best evaluation (train with keep_best), not its newest */
	int save;          /* also write the metrics to eval.json in the run's directory, where report finds them */
	uint64_t skip_bad; /* rows or files that may be left out because they cannot be read; 0: the run's number */
	const char *cache; /* where decoded images are kept: "auto", "off", or a folder; NULL: as the run does */
} ls_eval_options;
#define LS_EVAL_OPTIONS_INIT                                                                                           \
	{                                                                                                              \
		.size = sizeof(ls_eval_options), .batch = 128, .threads = 1                                            \
	}

typedef struct ls_eval_result {
	uint64_t samples;
	double loss, accuracy, seconds;
	uint64_t masked;                   /* tokens that were to be predicted; 0: none */
	double token_loss, token_accuracy; /* means over them */
	uint64_t fingerprint;              /* of the weights, as ls_train() reports it */
	double perplexity;    /* e^token_loss of a language model, whose accuracy is that of tokens; 0: another model */
	ls_task task;         /* of the data: */
	int unused;           /* 0 */
	double mae, rmse, r2; /* regression: means over the targets, in their units; there is no accuracy: it is NaN */
	double micro_f1, macro_f1; /* several labels, whose accuracy is that of all labels of a sample together */
	uint64_t reserved[1];      /* 0 */
} ls_eval_result;

/* Evaluate. `result` may be NULL. LS_EINTERRUPTED: options.stop or ls_train_stop() has ended it, between two
 * micro-batches; nothing is written. */
LS_API ls_status ls_eval(const ls_eval_options *options, ls_eval_result *result);

#ifdef __cplusplus
}
#endif
#endif
