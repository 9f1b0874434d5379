/*
 * token_targets.h - whether there is something to predict, for a model whose loss is of tokens. Without that its loss
 * is 0, the gradient is 0, and weight decay alone moves the weights.
 *
 * A language model learns from nothing but the tokens after a sample's own, so that every sample must have some. In
 * pretraining a sample also has a label, and a short one may have no masked token: a batch of the program and a dataset
 * must have one at least.
 */
#ifndef LS_TRAINER_TOKEN_TARGETS_H
#define LS_TRAINER_TOKEN_TARGETS_H

#include <lockstep/trainer.h>

#include "data/loader.h"
#include "graph/graph.h"

/* Of text in the program's memory. */
ls_status ls_token_targets_check_batch(const ls_graph *graph, const ls_batch *batch);

/* Measures samples up to the first that has a token to predict: usually one. That a dataset has no samples at all is
 * reported by those who need some. */
ls_status ls_token_targets_check_set(const ls_graph *graph, const ls_dataset *set);

/* Of a language model's samples, as a loader delivers them. */
ls_status ls_token_targets_check_microbatch(const ls_graph *graph, const ls_dataset *set,
					    const ls_microbatch *microbatch);

#endif
