/*
 * arrays.h - the micro-batches of a step whose samples a program has in memory.
 *
 * Images, labels and targets are used where they are; text is packed, each micro-batch into the memory of its device.
 * All of it is allocated at the beginning.
 */
#ifndef LS_TRAINER_ARRAYS_H
#define LS_TRAINER_ARRAYS_H

#include <lockstep/trainer.h>

#include "trainer/trainer.h"

typedef struct ls_arrays ls_arrays;

/* Steps of up to `batch` samples in micro-batches of `microbatch`, for `devices` devices; the graph is borrowed. */
ls_status ls_arrays_new(ls_arrays **out, const ls_graph *graph, int devices, int64_t microbatch, int64_t batch);
void ls_arrays_free(ls_arrays *arrays); /* harmless on NULL */

/* A step of these samples, which were checked (sample_check.h) and are borrowed until it is done. Samples without
 * numbers are numbered from `first` on. */
void ls_arrays_begin(ls_arrays *arrays, const ls_batch *batch, uint64_t first, ls_node_trainer_assignment *assign);

/* ls_node_trainer_options.next */
ls_status ls_arrays_next(void *context, int device, const ls_microbatch **microbatch);

#endif
