/*
 * sample_check.h - whether samples in a program's memory fit a model, said before anything is computed with them.
 */
#ifndef LS_TRAINER_SAMPLE_CHECK_H
#define LS_TRAINER_SAMPLE_CHECK_H

#include <lockstep/trainer.h>

#include "graph/graph.h"

/* Tokens and segments of sample i. */
ls_status ls_sample_check_text(const ls_graph *graph, const ls_text_sample *sample, int64_t i);

/* Images, or rows of features, are finite numbers: (count, C, H, W). */
ls_status ls_sample_check_images(const ls_graph *graph, const float *images, int64_t count);

/* 1 to `most` samples of the model's kind, with labels, everything in range and finite. */
ls_status ls_sample_check(const ls_graph *graph, const ls_batch *batch, int64_t most);

/* Floats of an image. */
size_t ls_sample_floats(const ls_graph *graph);

#endif
