/*
 * batcher.h - samples of many requests, predicted together.
 *
 * Continuous batching: one thread takes the samples that are there, in the order of requests and up to max_batch of
 * them, and predicts them; what arrives meanwhile is the next batch. So a lone sample is predicted at once, and batches
 * grow by themselves with the load. With a max_wait the thread first waits for max_batch samples, or until the oldest
 * has waited that long. A request may be spread over several batches, and a batch over many requests: what a sample
 * gives has the same bits in any company.
 */
#ifndef LS_TOOLS_SERVE_BATCHER_H
#define LS_TOOLS_SERVE_BATCHER_H

#include <lockstep/model.h>

typedef struct ls_batcher ls_batcher;

/* Samples of one request, all images or all text; the caller's, from submit to done. */
typedef struct ls_batch_job {
	int64_t count;
	const float *images;         /* (count, C, H, W), or: */
	const ls_text_sample *texts; /* (count) */
	float *chances;              /* (count, outputs): filled with probabilities */
	/* Called once by the batcher's thread, when all are predicted or that failed; `error`
	 * is valid during the call. */
	void (*done)(struct ls_batch_job *job, ls_status status, const char *error);

	/* the batcher's own */
	int64_t taken;
	double since;
	ls_status status;
	struct ls_batch_job *next;
} ls_batch_job;

typedef struct ls_batcher_options {
	ls_model *model; /* used by the batcher's thread alone */
	int64_t max_batch;
	double max_wait;                                  /* seconds; 0: never */
	int64_t queue_max;                                /* samples that may wait */
	void (*on_batch)(void *context, int64_t samples); /* called by the batcher's thread; may be NULL */
	void *context;
} ls_batcher_options;

ls_status ls_batcher_new(ls_batcher **out, const ls_batcher_options *options);

/* 0: the queue is full, and the job is not taken. From any thread. */
int ls_batcher_submit(ls_batcher *batcher, ls_batch_job *job);

/* Samples that wait. */
int64_t ls_batcher_waiting(ls_batcher *batcher);

/* Predicts what was submitted and ends; nothing more is taken. */
void ls_batcher_end(ls_batcher *batcher);
void ls_batcher_free(ls_batcher *batcher); /* ends it before; harmless on NULL */

#endif
