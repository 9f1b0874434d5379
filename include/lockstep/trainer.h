/*
 * trainer.h - train a model step by step, in a custom training loop.
 *
 *     ls_model_options what = LS_MODEL_OPTIONS_INIT;
 *     what.name = "cnn";
 *     ls_model *model = NULL;
 *     ls_trainer *trainer = NULL;
 *     ls_trainer_options options = LS_TRAINER_OPTIONS_INIT;
 *     options.lr = 1e-3;
 *     if (ls_model_new_named(&model, &what, 1) || ls_trainer_new(&trainer, model, &options)) {
 *         puts(ls_last_error());
 *         return 1;
 *     }
 *
 *     ls_batch batch = LS_BATCH_INIT;
 *     batch.count = 128;
 *     batch.images = images; // (128, 1, 28, 28)
 *     batch.labels = labels; // (128)
 *     ls_trainer_report report;
 *     if (ls_trainer_step(trainer, &batch, &report)) { puts(ls_last_error()); return 1; }
 *     printf("loss %g\n", report.loss);
 *
 *     ls_trainer_free(trainer);
 *     ls_model_free(model);
 *
 * A step has the same bits on any number of devices and threads, and those of ls_train() for the same samples, batch
 * and micro-batch. After every call the model has the new weights: predict with it, look at them, save it.
 *
 * Threads: a trainer and its model are used from one thread at a time. Several trainers with models of their own may
 * run side by side, in threads of the program. It trains on this machine, also in a program that mpirun started.
 * Nothing is printed. In a process that was forked, a trainer of its parent is refused with LS_EINVALID unless it has
 * one device of one thread: make it there.
 */
#ifndef LOCKSTEP_TRAINER_H
#define LOCKSTEP_TRAINER_H

#include <lockstep/data.h>
#include <lockstep/model.h>
#include <lockstep/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_trainer ls_trainer;

/* ---- making ------------------------------------------------------------------------------------------------------ */

typedef struct ls_trainer_options {
	size_t size; /* of this struct: LS_TRAINER_OPTIONS_INIT sets it */

	/* Samples of a step. A step may have fewer than `batch`; it is cut into micro-batches of micro_batch samples,
	 * the last of which may be smaller. */
	int64_t batch;
	int64_t micro_batch; /* 0: `batch` in equal parts of at most LS_MICRO_BATCH */

	/* the update, as in ls_train_options */
	const char *optimizer;
	double lr, momentum, beta1, epsilon, weight_decay;
	double beta2; /* 0: the optimizer's default */
	int nesterov;
	double clip_norm;     /* 0: no clipping */
	const char *schedule; /* "constant", "wsd", "step", "cosine", "linear" */
	int64_t steps;        /* of the whole training: wsd, cosine and linear need it */
	double lr_min;
	int64_t lr_step_every;
	double lr_step_factor;
	int64_t warmup;
	const char *freeze; /* "conv1.*,layer1.*": as in ls_train_options; NULL: everything is trained */
	uint64_t seed;      /* of dropout, and of the order of samples in ls_trainer_run() */

	/* where it runs */
	int64_t devices; /* teams of threads that compute micro-batches side by side; 0: one per core, but no more than
			  * have a micro-batch in a step */
	int64_t threads; /* per device; 0: share the cores equally between the devices */
	const char *pin; /* threads stay on cores of their own: "off", "on", "auto" */

	/* "crop:4,flip": random changes of the images of ls_trainer_run(), as in ls_train_options; arrays are taken as
	 * they are. NULL: none */
	const char *augment;

	/* "fp32", "bf16", "bf16-amx", "bf16-layers", "auto": as in ls_train_options. NULL: what the model computes in,
	 * that of the run it was loaded from, else fp32. From then on the model predicts in it, and files of the model
	 * say so. */
	const char *precision;
} ls_trainer_options;
#define LS_TRAINER_OPTIONS_INIT                                                                                        \
	{                                                                                                              \
		.size = sizeof(ls_trainer_options), .batch = 128, .optimizer = "adam", .lr = 0.001, .momentum = 0.9,   \
		.beta1 = 0.9, .epsilon = 1e-8, .schedule = "constant", .lr_step_factor = 0.1, .seed = 1, .pin = "off"  \
	}

/* The model stays the program's, to use between calls; it may be freed before its trainer, which then keeps it. It has
 * one trainer at a time. */
LS_API ls_status ls_trainer_new(ls_trainer **out, ls_model *model, const ls_trainer_options *options);
/* Harmless on NULL; the model keeps its weights. Called by a hook, it ends the run, and the trainer goes when that
 * returns. */
LS_API void ls_trainer_free(ls_trainer *trainer);

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Samples in the program's memory. */
typedef struct ls_batch {
	size_t size; /* of this struct: LS_BATCH_INIT sets it */
	int64_t count;
	const float *images;        /* (count, C, H, W), normalised as the model wants them */
	const int32_t *labels;      /* (count) of images */
	const ls_text_sample *text; /* (count) in place of images and labels; segments may be NULL */
	const uint64_t *indices;    /* (count) numbers of the samples, for dropout; NULL: 0, 1, ... */
	const float
		*targets; /* (count, outputs of the model) in place of labels, for losses that compare with numbers or
				 probabilities; NULL: labels */
} ls_batch;
#define LS_BATCH_INIT                                                                                                  \
	{                                                                                                              \
		.size = sizeof(ls_batch)                                                                               \
	}

typedef struct ls_trainer_report {
	int64_t steps;   /* updates so far, with this one */
	int64_t samples; /* that the rest is of */
	double loss;     /* mean; of text to be predicted, that of classes and tokens together */
	int64_t correct; /* predictions that were right before the update */
	double accuracy;
	int64_t tokens, masked; /* of text, and those to be predicted */
	double token_loss, token_accuracy;
	double lr;            /* that was used */
	double gradient_norm; /* of the mean gradient, before clipping; NaN where options.clip_norm is 0 */
	uint64_t reserved[8]; /* 0 */
} ls_trainer_report;

/*
 * Forward, backward and update on 1 to options.batch samples. The report may be NULL. Samples are checked first: labels
 * and tokens out of range, numbers that are not finite and text with nothing to predict where that is what is trained
 * are LS_EINVALID, and nothing has happened. LS_ENUMERIC: the loss is not finite; the update is done, and the weights
 * are useless.
 *
 * The first step that ends with a micro-batch of a new size allocates memory for it; others allocate nothing.
 */
LS_API ls_status ls_trainer_step(ls_trainer *trainer, const ls_batch *batch, ls_trainer_report *report);

/*
 * Steps on a dataset, in the order of ls_train(): `steps` of them, or with 0 those to the end of the epoch. Each takes
 * options.batch samples, the last one of an epoch what is left. The trainer remembers where it is, so calls continue
 * each other; a dataset whose epochs have no such step is LS_EMISMATCH. The report is of all these steps, with the last
 * one's rate and norm.
 */
LS_API ls_status ls_trainer_run(ls_trainer *trainer, const ls_dataset *dataset, int64_t steps,
				ls_trainer_report *report);

/*
 * Called after every step of ls_trainer_run(), with that step's report; other than 0 ends the run with LS_EINTERRUPTED.
 * NULL: none. A hook may evaluate, save, look at the trainer and set its learning rate, and use the model. Steps,
 * gradients, ls_trainer_load() and another run are LS_EINVALID in it.
 */
typedef int (*ls_trainer_hook)(void *context, const ls_trainer_report *report);
LS_API ls_status ls_trainer_set_hook(ls_trainer *trainer, ls_trainer_hook hook, void *context);

/*
 * A request to stop (lockstep/hooks.h), from any thread or a signal handler, for all calls to come: ls_trainer_run()
 * ends after its step, evaluations after the micro-batches that have begun, with LS_EINTERRUPTED, and the trainer can
 * go on. Borrowed: free it after the trainer, or set NULL, which is none, before that.
 */
LS_API ls_status ls_trainer_set_stop(ls_trainer *trainer, const ls_stop *stop);

/* ---- a step in two halves ---------------------------------------------------------------------------------------- */

/* Backward without the update: computes the gradient and leaves the weights as they are (running statistics of batch
 * normalisation move). Called again before ls_trainer_update(), gradients add up to that of all samples together.
 * LS_ENUMERIC: the loss is not finite; the gradient is zero again. */
LS_API ls_status ls_trainer_backward(ls_trainer *trainer, const ls_batch *batch, ls_trainer_report *report);

/*
 * The gradient of a parameter: of the mean loss over the samples since the last update, all elements in the row-major
 * order of the shape (ls_model_param_of). Once one is set, the others are what backward computed, or zero, and
 * ls_trainer_backward() is refused until the next update. Setting refuses numbers that are not finite.
 */
LS_API ls_status ls_trainer_get_gradient(ls_trainer *trainer, const char *name, float *values, uint64_t elements);
LS_API ls_status ls_trainer_set_gradient(ls_trainer *trainer, const char *name, const float *values, uint64_t elements);

/* Update the weights with the gradient: clipping, optimizer, one step more. Backward and update give the bits of
 * ls_trainer_step(). *gradient_norm as in the report; may be NULL. */
LS_API ls_status ls_trainer_update(ls_trainer *trainer, double *gradient_norm);
LS_API ls_status ls_trainer_zero_gradient(ls_trainer *trainer); /* discards the gradient, without an update */

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* Loss and accuracy with the weights as they are and running statistics; any number of samples. */
LS_API ls_status ls_trainer_evaluate(ls_trainer *trainer, const ls_batch *batch, ls_eval_result *result);
LS_API ls_status ls_trainer_evaluate_dataset(ls_trainer *trainer, const ls_dataset *dataset, ls_eval_result *result);

/* The learning rate of the next step. Setting it replaces the schedule: it is that of all steps to come. */
LS_API ls_status ls_trainer_get_lr(const ls_trainer *trainer, double *lr);
LS_API ls_status ls_trainer_set_lr(ls_trainer *trainer, double lr);

/* Where it is. */
typedef struct ls_trainer_position {
	int64_t steps;            /* updates so far */
	int64_t epoch;            /* of ls_trainer_run(): the next step's, the first is 0 */
	int64_t epoch_step;       /* the next step within it */
	int64_t devices, threads; /* that it runs on; threads per device */
	int64_t micro_batch;
	uint64_t reserved[8]; /* 0 */
} ls_trainer_position;
LS_API ls_status ls_trainer_get_position(const ls_trainer *trainer, ls_trainer_position *out);

/*
 * All that a step changes: weights, the optimizer's state, where it is and the learning rate's schedule.
 * `directory` gets a checkpoint as a run directory has them (docs/files.md), whole or not at all, and keeps the
 * newest `keep` of them (0: all). A trainer on the same model with the same options, on any devices, that loads
 * it goes on with the same bits.
 */
LS_API ls_status ls_trainer_save(const ls_trainer *trainer, const char *directory, int64_t keep);
/* The newest. After a failure while weights are read, the trainer cannot go on. */
LS_API ls_status ls_trainer_load(ls_trainer *trainer, const char *directory);

#ifdef __cplusplus
}
#endif
#endif
