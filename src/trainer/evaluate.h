/*
 * evaluate.h - one pass over a dataset with running statistics, shared by the devices of all nodes.
 *
 * The dataset is cut into micro-batches. Nodes get runs of them, as they do in training, and a node's run is cut over
 * its devices. What each micro-batch came to goes to every node and is added in micro-batch order, so a result has the
 * same bits on any layout, and every node has it.
 */
#ifndef LS_TRAINER_EVALUATE_H
#define LS_TRAINER_EVALUATE_H

#include <lockstep/train.h>

#include "backends/devices.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "exchange/assigner.h"
#include "trainer/target_sums.h"

typedef struct ls_evaluator ls_evaluator;

/* Everything is borrowed, arrays only until the evaluator is made. */
typedef struct ls_evaluator_options {
	const ls_graph *graph;
	const ls_dataset *dataset;
	int64_t batch; /* samples of a micro-batch */

	const ls_backend *backend; /* of the devices */
	int devices;    /* of this node, the first ones; 0: a server, which takes part without micro-batches */
	ls_devices *on; /* they are open; a plan does not need it */

	ls_comm *comm;         /* NULL: one node */
	const int *devices_of; /* (nodes) of all nodes, and their shares; looked at when there are several */
	const double *weight;  /* (nodes) */

	int is_quiet;        /* show no progress */
	const double *scale; /* (outputs) of float targets: a unit of each, in its own units; NULL: 1 */
} ls_evaluator_options;

ls_status ls_evaluator_new(ls_evaluator **out, const ls_evaluator_options *options);
void ls_evaluator_free(ls_evaluator *evaluator);

/* Bytes of an evaluator, with its loaders. */
typedef struct ls_evaluator_bytes {
	size_t used;   /* with the share of micro-batches that this node has at the beginning */
	size_t most;   /* with any share */
	size_t mapped; /* of address space */
	int readers;   /* threads it starts for a pass, at most */
} ls_evaluator_bytes;

/* On devices of `threads` host threads; passes are over the first `microbatches` micro-batches, 0: all. */
ls_status ls_evaluator_plan(const ls_evaluator_options *options, int threads, int64_t microbatches,
			    ls_evaluator_bytes *out);

/* Ask `stop` before every micro-batch; when it says yes on any node, the pass ends with LS_EINTERRUPTED on all. NULL
 * (the default): never. */
void ls_evaluator_set_stop(ls_evaluator *evaluator, int (*stop)(void *context), void *context);

/* Nodes' shares from the next pass on, (nodes): the same on all nodes. */
void ls_evaluator_set_weights(ls_evaluator *evaluator, const double *weight);

/* Samples of one micro-batch with their logits (count, classes); may be NULL. Called by the drivers, in no order. */
typedef void (*ls_evaluator_sink)(void *context, const ls_microbatch *microbatch, const float *logits);

/* Whether the loss of the first micro-batch is finite: after divergence it is not. */
ls_status ls_evaluator_probe(ls_evaluator *evaluator, const float *params, const float *buffers, int *finite);

/* Called by all nodes, with the same weights. All get the same result, except for the seconds. */
ls_status ls_evaluator_run(ls_evaluator *evaluator, const float *params, const float *buffers, ls_evaluator_sink sink,
			   void *context, ls_eval_result *out);

/* Sums of the last pass, (outputs), where the dataset has float targets and another task than classes; else NULL. */
const ls_target_sums *ls_evaluator_sums(const ls_evaluator *evaluator);

/* A dataset must fit a graph: finished, input shape, classes. */
ls_status ls_graph_fits(const ls_graph *graph, const ls_dataset_info *info);

/* To be trained on or evaluated, it must also have tokens to predict, where those are what the loss is of. */
ls_status ls_graph_fits_set(const ls_graph *graph, const ls_dataset *set);

#endif
