/*
 * setup.h - make everything a run needs, from its settings, before the first step.
 */
#ifndef LS_RUN_SETUP_H
#define LS_RUN_SETUP_H

#include <lockstep/train.h>

#include "data/transforms/transforms.h"
#include "run/tracing.h"
#include "settings/settings.h"
#include "trainer/batches.h"
#include "trainer/evaluate.h"
#include "trainer/layout.h"
#include "trainer/trainer.h"

/* What a run holds. Fields named own_ are freed with it. */
typedef struct ls_setup {
	const ls_train_options *options; /* &resolved */
	const ls_train_options *given;   /* borrowed, until the run is set up */
	ls_train_options resolved;
	ls_train_options
		asked; /* before anything follows from layout and data: with the run's own where it is resumed */
	ls_train_stored stored;    /* of the run */
	char vocab[4096];          /* of another run, which `resolved` then names */
	const ls_backend *backend; /* of all devices */
	ls_layout layout;
	ls_settings_batches batches;
	ls_normalisation normalisation;         /* of the run's or the initial weights; zero: the data's own */
	char *class_weights;                    /* that resolved names; NULL: none */
	char *columns;                          /* of a table: the same; NULL: the data's own */
	const ls_dataset *train_set, *test_set; /* test_set: NULL without evaluation */
	ls_dataset *own_train, *own_test;
	uint64_t train_hash, test_hash; /* of their samples when they were opened (sample_hash.h); 0: not our own */
	ls_graph *graph, *own_graph;
	struct ls_model *lender; /* options.model_handle, once its training has begun */
	uint64_t steps_per_epoch, total_steps;
	ls_tracing *tracing; /* NULL: none */
	ls_node_trainer *trainer;
	ls_transforms transforms; /* of training images */
	ls_batches train_batches; /* opened when it is known where to start */
	ls_evaluator *evaluator;  /* on all nodes; NULL without evaluation */
	ls_evaluator *probe;      /* a few training samples, to check that weights give a finite loss */
	int has_snapshot;         /* checkpoints are written from a copy, while training goes on */
	int frees_memory;         /* where snapshots of earlier starts make room for them */
	int has_memory;           /* there is memory for snapshots that outlive the processes (snapshots.h) */
} ls_setup;

/* Fails before anything large is allocated when the machine has too little. With options->plan_memory prints the plan,
 * whether or not it fits, and makes nothing. `comm` is borrowed; NULL: one node. `setup` stays where it is, and is
 * released also after a failure. */
ls_status ls_setup_make(ls_setup *setup, const ls_train_options *options, ls_comm *comm);

/* The learning rate by settings that are resolved; options.steps is the length of the whole training. */
ls_schedule_options ls_setup_schedule(const ls_train_options *options);

/* What a trainer takes from settings that are resolved and from a layout: optimizer, schedule, clipping, strategy. Its
 * batches are the caller's. */
ls_node_trainer_options ls_setup_trainer_options(const ls_train_options *options, const ls_layout *layout,
						 ls_graph *graph);

/* Micro-batches from this position on, `steps` steps of them at most. `generation`: of this start, for a log. */
ls_status ls_setup_batches(ls_setup *setup, uint64_t epoch, uint64_t epoch_step, uint64_t steps, uint64_t generation);

/* When the communication thread is gone: until then messages may be under way to what this frees. */
void ls_setup_release(ls_setup *setup);

/* The node that prints and writes. */
static inline int ls_setup_is_first(const ls_setup *setup)
{
	return setup->layout.node == 0;
}

#endif
