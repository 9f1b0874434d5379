/*
 * trainer_handle.h - the inside of an ls_trainer: a model with a trainer of this node, and where micro-batches come
 * from.
 */
#ifndef LS_RUN_TRAINER_HANDLE_H
#define LS_RUN_TRAINER_HANDLE_H

#include <lockstep/trainer.h>

#include "data/transforms/transforms.h"
#include "trained/model_handle.h"
#include "trainer/arrays.h"
#include "trainer/batches.h"
#include "trainer/layout.h"
#include "trainer/trainer.h"

#define LS_TRAINER_KIND "trainer" /* handles.h */

/* The call that a trainer is in. While its hook runs, calls that need no step of their own may begin inside it. */
typedef struct ls_trainer_use {
	const char *function; /* NULL: none */
	int is_in_hook;
} ls_trainer_use;

struct ls_trainer {
	ls_model *model;
	ls_train_options settings; /* that the options come to */
	char *freeze;              /* in settings; NULL: nothing is frozen */
	char *augment;             /* in settings; NULL: images are taken as they are */
	ls_transforms transforms;  /* of the dataset of ls_trainer_run(), while that runs */
	ls_layout layout;
	ls_precision precision_before; /* of the model's graph */
	ls_node_trainer *node;         /* works in the model's stores */
	ls_arrays *arrays;
	ls_batches batches; /* of the dataset of ls_trainer_run(), while that runs */
	int reads_dataset;  /* micro-batches come from there */
	uint64_t epoch, epoch_step;
	uint64_t backward_samples; /* of gradients since the last update */
	int was_set;               /* a gradient, since then */
	ls_trainer_hook hook;
	void *hook_context;
	const ls_stop *stop; /* NULL: none */
	ls_trainer_use use;
	int is_freed;     /* in its own hook: the call that it is in releases it */
	ls_status failed; /* a step broke off: what is half done cannot go on */
	char why[512];
};

/* Passes a status on; after a failure the trainer is half done, and calls to come say why it cannot go on. */
ls_status ls_trainer_break_off(ls_trainer *trainer, ls_status status);

/* A call that computes: *outer is the one that it is called in, if any, and what ls_trainer_end() takes back. */
ls_status ls_trainer_begin(ls_trainer *trainer, const char *function, ls_trainer_use *outer);
/* The trainer may be gone behind it; the status is passed on. */
ls_status ls_trainer_end(ls_trainer *trainer, const ls_trainer_use *outer, ls_status status);
/* The threads that it computes with are those of this process, which was not forked since. */
ls_status ls_trainer_check_process(const ls_trainer *trainer);
/* No call is under way, or it waits for its hook. */
ls_status ls_trainer_check_between_steps(const ls_trainer *trainer);

/* It is one, can go on, and is in no other call. */
ls_status ls_trainer_check(const ls_trainer *trainer);

#endif
