/*
 * hooks.h - how a program follows a run of ls_train(), and ends it.
 *
 *     static ls_status on_step(void *context, const ls_train_step *step)
 *     {
 *         draw(context, step->step, step->loss);
 *         return LS_OK;
 *     }
 *
 *     ls_train_hooks hooks = LS_TRAIN_HOOKS_INIT;
 *     hooks.step = on_step;
 *     hooks.context = window;
 *     options.hooks = &hooks;
 *     ls_train(&options, NULL);
 */
#ifndef LOCKSTEP_HOOKS_H
#define LOCKSTEP_HOOKS_H

#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ending a run ------------------------------------------------------------------------------------------------ */

/*
 * A request to stop, for the runs whose options.stop it is: such a run finishes its step, writes a checkpoint and
 * returns LS_EINTERRUPTED; an ls_eval() finishes its micro-batches and does. On several nodes it is enough that
 * one node requests it. Requesting is safe in a signal handler and from any thread. A handle that was requested
 * stays so until it is cleared.
 */
typedef struct ls_stop ls_stop;
LS_API ls_status ls_stop_new(ls_stop **out);
LS_API void ls_stop_free(ls_stop *stop); /* harmless on NULL; when no run uses it any more */
LS_API void ls_stop_request(ls_stop *stop);
LS_API void ls_stop_clear(ls_stop *stop);
LS_API int ls_stop_is_requested(const ls_stop *stop);

/* ---- following a run --------------------------------------------------------------------------------------------- */

/* A step is complete. */
typedef struct ls_train_step {
	int64_t step, steps;   /* how many are done, of how many */
	int64_t epoch;         /* that it belongs to, the first is 0 */
	int64_t samples;       /* of the step */
	double loss, accuracy; /* means over them, before the update */
	double lr;
	double gradient_norm; /* NaN where options.clip_norm is 0 */
	double seconds;
	uint64_t reserved[8]; /* 0 */
} ls_train_step;

/* An epoch is complete, and evaluated where it was to be. */
typedef struct ls_train_epoch {
	int64_t epoch, epochs; /* the first is 0; how many there will be */
	int64_t step;          /* steps done */
	double loss, accuracy; /* means over its training samples */
	double seconds;        /* of training */
	int is_tested;
	double test_loss, test_accuracy; /* NaN where it was not tested */
	uint64_t reserved[8];            /* 0 */
} ls_train_epoch;

/* An evaluation on the test set is done, at the end of an epoch or by options.eval_steps. */
typedef struct ls_train_test {
	int64_t step, epoch;   /* steps done; the epoch of the last, the first is 0 */
	double loss, accuracy; /* as ls_eval_result has them */
	double perplexity;     /* of language models; 0: another model */
	double seconds;
	double metric;        /* of options.keep_best; NaN where evaluations are not compared */
	int64_t is_best;      /* it is the best so far */
	int64_t best_step;    /* of the best so far; 0: none */
	double best;          /* its metric */
	int64_t stale;        /* evaluations since one was better, of options.early_stop */
	uint64_t reserved[8]; /* 0 */
} ls_train_test;

/* A checkpoint is on disk. Training has gone on while it was written, so `step` may be behind that of the last step. */
typedef struct ls_train_checkpoint {
	int64_t step;
	const char *run;      /* directory of the run */
	uint64_t fingerprint; /* of the parameters */
	uint64_t reserved[4]; /* 0 */
} ls_train_checkpoint;

typedef enum ls_train_line { LS_LINE_RESULT, LS_LINE_NOTE, LS_LINE_WARNING } ls_train_line;

/*
 * Each may be NULL. `step`, `epoch` and `test` are called on every node, `checkpoint` on the first, by the thread that
 * called ls_train(). A status other than LS_OK ends the run as a stop does, with a checkpoint, and ls_train() returns
 * it.
 *
 * `log` gets every line that would be printed, without a line feed, and then nothing is printed and no progress shown:
 * a program whose `log` does nothing is silent. It may be called by any thread of the run.
 */
typedef struct ls_train_hooks {
	size_t size; /* of this struct: LS_TRAIN_HOOKS_INIT sets it */
	void *context;
	ls_status (*step)(void *context, const ls_train_step *step);
	ls_status (*epoch)(void *context, const ls_train_epoch *epoch);
	ls_status (*checkpoint)(void *context, const ls_train_checkpoint *checkpoint);
	void (*log)(void *context, ls_train_line kind, const char *line);
	ls_status (*test)(void *context, const ls_train_test *test); /* before the epoch that it ends */
} ls_train_hooks;
#define LS_TRAIN_HOOKS_INIT                                                                                            \
	{                                                                                                              \
		.size = sizeof(ls_train_hooks)                                                                         \
	}

#ifdef __cplusplus
}
#endif
#endif
