/*
 * batches.h - the micro-batches of a node's devices: steps are assigned ahead, and each device has a loader that reads
 * its own.
 *
 * The assignment of step s + LS_BATCHES_AHEAD is decided when step s is complete and accounted for, from what all nodes
 * know by then: the same on every node, and early enough for loaders to read ahead.
 */
#ifndef LS_TRAINER_BATCHES_H
#define LS_TRAINER_BATCHES_H

#include "data/loader.h"
#include "exchange/assigner.h"
#include "trainer/layout.h"
#include "trainer/sample_log.h"
#include "trainer/trainer.h"

enum { LS_BATCHES_AHEAD = 4, LS_BATCHES_RING = 8 };

typedef struct ls_batches_options {
	const ls_layout *layout;   /* borrowed */
	const ls_dataset *dataset; /* borrowed */
	uint64_t seed;
	int64_t microbatch, global_batch;
	uint64_t start_epoch, start_step;       /* the first step: of that epoch */
	uint64_t steps;                         /* how many there will be at most */
	const struct ls_transforms *transforms; /* of images; NULL: none. Borrowed */
	const char *sample_log;                 /* directory of sample_log.h; NULL: none. Borrowed */
	uint64_t generation;                    /* of this start, for the log */
	const ls_graph *graph;                  /* that the samples are for. Borrowed */
} ls_batches_options;

/* A step that is assigned. */
typedef struct ls_assigned_step {
	ls_step_shape shape;
	int64_t *cut; /* (nodes + 1) */
} ls_assigned_step;

typedef struct ls_batches {
	ls_batches_options options;
	uint64_t samples, steps_per_epoch;
	ls_assigner assigner;
	ls_loader **loader; /* (devices) */
	int64_t *device_cut;
	int64_t *together_cut;                  /* (nodes + 1) */
	uint64_t epoch_step;                    /* of the next step to be assigned */
	uint64_t assigned, begun, learned;      /* steps, of all since the start */
	ls_assigned_step ring[LS_BATCHES_RING]; /* by step */
	int *node, *device;                     /* (micro-batches) of the step that was begun */
	ls_sample_log log;
} ls_batches;

ls_status ls_batches_open(ls_batches *batches, const ls_batches_options *options);
void ls_batches_close(ls_batches *batches);

/* The next step, for ls_node_trainer_step(). */
void ls_batches_begin(ls_batches *batches, ls_node_trainer_assignment *assign, int *last_in_epoch);

/* Reports come in the order of steps, one each. */
ls_status ls_batches_learn(ls_batches *batches, const ls_node_trainer_report *report);

/* With staleness reports are each node's own: they count, but the assignment follows only what nodes exchange
 * now and then: seconds of devices and micro-batches of every node since the last time (nodes each). */
ls_status ls_batches_skip(ls_batches *batches);
void ls_batches_learn_together(ls_batches *batches, const int64_t *microbatches, const double *seconds);

/* ls_node_trainer_options.next */
ls_status ls_batches_next(void *context, int device, const ls_microbatch **microbatch);

#endif
