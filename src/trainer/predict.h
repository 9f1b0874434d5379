/*
 * predict.h - the outputs of a model for samples in memory.
 *
 * Samples are cut into micro-batches whose sizes are powers of two, so that any number of samples is made of sizes that
 * memory was planned for, and the devices take one after another. What a sample gives has the same bits whatever is
 * computed with it, on any number of devices and threads.
 */
#ifndef LS_TRAINER_PREDICT_H
#define LS_TRAINER_PREDICT_H

#include <lockstep/data.h>

#include "backends/devices.h"

typedef struct ls_predictor ls_predictor;

typedef struct ls_predictor_options {
	const ls_graph *graph; /* borrowed; finished */
	const ls_backend *backend;
	int devices, threads; /* host threads of a device */
	ls_pin_mode pin;
} ls_predictor_options;

ls_status ls_predictor_new(ls_predictor **out, const ls_predictor_options *options);
void ls_predictor_free(ls_predictor *predictor); /* harmless on NULL */

/* Whether this process was forked since: its threads are gone. All that is left is to free it. */
int ls_predictor_is_lost(const ls_predictor *predictor);

/* With these weights from now on: (total) and (buffers), borrowed. */
void ls_predictor_set_params(ls_predictor *predictor, const float *params, const float *buffers);

/* Outputs of a sample: classes. */
int64_t ls_predictor_outputs(const ls_predictor *predictor);

/* Images (count, C, H, W), or samples of text without masked positions, to logits (count, outputs). */
ls_status ls_predictor_run(ls_predictor *predictor, const float *images, int64_t count, float *logits);
ls_status ls_predictor_run_text(ls_predictor *predictor, const ls_text_sample *samples, int64_t count, float *logits);

#endif
