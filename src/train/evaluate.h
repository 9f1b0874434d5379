/*
 * evaluate.h - one pass over a dataset with running statistics.
 */
#ifndef LS_TRAIN_EVALUATE_H
#define LS_TRAIN_EVALUATE_H

#include <lockstep/train.h>

#include "base/team.h"
#include "data/loader.h"
#include "graph/exec.h"

typedef struct ls_evaluator ls_evaluator;

/* Plan the pass: `team` and `dataset` are borrowed. */
ls_status ls_evaluator_new(ls_evaluator **out, const ls_graph *graph, const ls_dataset *dataset, ls_team *team,
			   int64_t batch);
void ls_evaluator_free(ls_evaluator *evaluator);

/* Ask `stop` before every leaf; when it says yes the pass ends with LS_EINTERRUPTED. NULL (the default): never. */
void ls_evaluator_set_stop(ls_evaluator *evaluator, int (*stop)(void));

/* Samples of one leaf with their logits (count, classes); may be NULL. */
typedef void (*ls_evaluator_sink)(void *context, const ls_leaf *leaf, const float *logits);

/* The first leaf alone: is the loss there a finite number? Tells weights that still work from ones that blew up. */
ls_status ls_evaluator_probe(ls_evaluator *evaluator, const float *params, const float *buffers, int *finite);

ls_status ls_evaluator_run(ls_evaluator *evaluator, const float *params, const float *buffers, ls_evaluator_sink sink,
			   void *context, ls_eval_result *out);

/* A dataset must fit a graph: finished, input shape, classes. */
ls_status ls_graph_fits(const ls_graph *graph, const ls_dataset_info *info);

#endif
