/*
 * data.h - the samples of a bench: random ones in memory, or text of a dataset.
 *
 * Random images are one micro-batch, the same each time. Random text has one length, too, the greatest there is.
 * Sentences of a dataset come through one loader per device, so that their lengths vary as they do in training; it
 * reads ahead.
 */
#ifndef LS_TOOLS_BENCH_DATA_H
#define LS_TOOLS_BENCH_DATA_H

#include <lockstep/bench.h>

#include "data/loader.h"
#include "graph/graph.h"

typedef struct ls_bench_data {
	ls_dataset *set;     /* of text; NULL: images */
	ls_loader **loaders; /* (devices) */
	int devices;
	int64_t microbatch_size;
	float *images;
	size_t image_bytes;
	int32_t *labels;
	uint64_t *samples;
	ls_microbatch microbatch;       /* images */
	double *tokens, *masked, *seen; /* (devices) of text, so far */
} ls_bench_data;

/* What the samples look like, before there is a model: text is opened, images are described. */
ls_status ls_bench_data_open(ls_bench_data *data, const ls_bench_options *options, const ls_train_options *job,
			     ls_dataset_info *info);

/* Ready to deliver micro-batches of job->microbatch samples to `devices` devices. */
ls_status ls_bench_data_fill(ls_bench_data *data, const ls_train_options *job, const ls_graph *graph, int devices);
/* Bytes that takes. */
size_t ls_bench_data_bytes(const ls_bench_data *data, const ls_train_options *job, const ls_graph *graph, int devices);
void ls_bench_data_close(ls_bench_data *data);

/* ls_node_trainer_options.next; the context is the data. */
ls_status ls_bench_data_next(void *context, int device, const ls_microbatch **microbatch);

/* Means over what was delivered; 0: images. */
double ls_bench_data_tokens(const ls_bench_data *data, double *masked);

#endif
