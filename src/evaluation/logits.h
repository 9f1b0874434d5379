/*
 * logits.h - a model's outputs on a dataset and what they are of, kept for another framework to check.
 *
 *   images   logits (n, classes), labels (n), images (n, C, H, W)
 *   both     float_targets (n, outputs) where the data has them (lockstep/data.h)
 *   text     logits (n, classes), labels (n), tokens (t), segments (t), starts (n + 1): sample i has the tokens
 *            [starts[i], starts[i+1]); for pretraining also masked positions (p), places among the tokens, and targets
 *            (p), what stood there. Logits of masked positions are not kept: they would be p times the vocabulary.
 */
#ifndef LS_EVALUATION_LOGITS_H
#define LS_EVALUATION_LOGITS_H

#include "trainer/evaluate.h"

typedef struct ls_logits ls_logits;

ls_status ls_logits_new(ls_logits **out, const ls_graph *graph, const ls_dataset *set);
void ls_logits_free(ls_logits *logits);

/* Keep a micro-batch: an ls_evaluator_sink. Micro-batches come in no order and from several threads. */
void ls_logits_keep(void *outputs, const ls_microbatch *microbatch, const float *logits);

/* `weights` names in the metadata what computed them. */
ls_status ls_logits_write(ls_logits *logits, const char *path, const char *weights);

#endif
