/*
 * trainer_handle.h - the inside of an ls_trainer: a model with a trainer of this node, and where micro-batches come
 * from.
 */
#ifndef LS_RUN_TRAINER_HANDLE_H
#define LS_RUN_TRAINER_HANDLE_H

#include <lockstep/trainer.h>

#include "data/transforms/transforms.h"
#include "run/model_handle.h"
#include "trainer/arrays.h"
#include "trainer/batches.h"
#include "trainer/layout.h"
#include "trainer/trainer.h"

#define LS_TRAINER_KIND "trainer" /* handles.h */

struct ls_trainer {
	ls_model *model;
	ls_train_options settings; /* that the options come to */
	char *freeze;              /* in settings; NULL: nothing is frozen */
	char *augment;             /* in settings; NULL: images are taken as they are */
	ls_transforms transforms;  /* of the dataset of ls_trainer_run(), while that runs */
	ls_layout layout;
	ls_node_trainer *node; /* works in the model's stores */
	ls_arrays *arrays;
	ls_batches batches; /* of the dataset of ls_trainer_run(), while that runs */
	int reads_dataset;  /* micro-batches come from there */
	uint64_t epoch, epoch_step;
	uint64_t backward_samples; /* of gradients since the last update */
	int was_set;               /* a gradient, since then */
	ls_trainer_hook hook;
	void *hook_context;
	ls_status failed; /* a step broke off: what is half done cannot go on */
	char why[512];
};

/* Passes a status on; after a failure the trainer is half done, and calls to come say why it cannot go on. */
ls_status ls_trainer_break_off(ls_trainer *trainer, ls_status status);

/* It is one, and can go on. */
ls_status ls_trainer_check(const ls_trainer *trainer);

#endif
