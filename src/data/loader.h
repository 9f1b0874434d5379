/*
 * loader.h - micro-batches in training order, read ahead by a thread.
 *
 * An epoch is a keyed permutation of [0, n) (seed, epoch), computed per index: no table. Step s of an epoch takes the
 * samples [s*B, min((s+1)*B, n)) of that order, B the global batch, cut into micro-batches of `microbatch` samples; the
 * last step and its last micro-batch may be short. Every sample comes exactly once per epoch.
 *
 * Many loaders can share the steps: each is `assigned` the micro-batches of a step that are its own, reads those alone,
 * and together they deliver what one loader would.
 */
#ifndef LS_DATA_LOADER_H
#define LS_DATA_LOADER_H

#include <lockstep/data.h>

#include "params/packed.h"

typedef struct ls_loader ls_loader;

typedef struct ls_loader_options {
	uint64_t seed;
	int shuffle;                      /* 0: index order */
	int64_t microbatch;               /* samples */
	int64_t global_batch;             /* samples; the last micro-batch of a step may be short */
	uint64_t start_epoch, start_step; /* the first step to deliver: step start_step of epoch start_epoch */
	int ahead;                        /* micro-batches read ahead; 0: 4, or one per thread if those are more */
	int single_pass;                  /* end after one epoch */
	int threads;                      /* reader threads; 0: 1. Does not change what is delivered */
	int assigned;                     /* deliver only what ls_loader_assign() says */
	const struct ls_transforms *transforms; /* of images; NULL: none. Borrowed */
	int one_hot;                            /* labels become float targets: 1 for the label's class, 0 for others */
} ls_loader_options;

typedef struct ls_microbatch {
	int64_t count;         /* samples */
	const float *images;   /* (count, C, H, W); NULL: text */
	const ls_packed *text; /* NULL: images */
	const int32_t *labels; /* (count) */
	const float *targets;  /* (count, target_count) float targets; NULL: labels alone */
	int target_count;
	const uint64_t *samples;         /* (count) dataset indices */
	uint64_t epoch, step;            /* step within the epoch */
	int64_t microbatch;              /* micro-batch within the step */
	int64_t step_samples;            /* samples of the whole step */
	int last_in_step, last_in_epoch; /* of the whole step, including micro-batches of other loaders */
} ls_microbatch;

/* The shape of a step of an epoch. */
typedef struct ls_step_shape {
	int64_t samples, microbatches;
	int last_in_epoch;
} ls_step_shape;

/* Reader threads for a device of `threads` threads: as many, up to 16, where a sample takes work (files that are
 * decoded, images that are transformed); one where it is copied from memory. */
int ls_loader_threads(const ls_dataset *dataset, const struct ls_transforms *transforms, int threads);

/* Steps that can be assigned and not yet delivered. */
enum { LS_LOADER_ASSIGNS = 8 };

ls_status ls_loader_new(ls_loader **out, const ls_dataset *dataset, const ls_loader_options *options);
/* Bytes of such a loader's buffers when it delivers `microbatches` micro-batches or more. */
size_t ls_loader_bytes(const ls_dataset *dataset, const ls_loader_options *options, uint64_t microbatches);
void ls_loader_free(ls_loader *loader);

/* The next micro-batch, borrowed until the next call. Sets *out = NULL at the end of a single pass. A loader with
 * assigned micro-batches fails once all of them are delivered, because waiting for the next assignment might never end.
 */
ls_status ls_loader_next(ls_loader *loader, const ls_microbatch **out);

/*
 * Assign the micro-batches [first, first + count) of the next unassigned step to this loader; count 0: none. Steps are
 * assigned in order, the first being start_step, on into the next epoch. The readers start at once, so assign as early
 * as possible; at most LS_LOADER_ASSIGNS steps may be assigned and not delivered. Any thread may assign, and one may
 * while another takes micro-batches.
 */
ls_status ls_loader_assign(ls_loader *loader, int64_t first, int64_t count);

/* Steps in an epoch of n samples. */
uint64_t ls_loader_steps(uint64_t samples, int64_t global_batch);

/* The shape of step `step` of such an epoch; step < ls_loader_steps(). */
void ls_loader_step_at(uint64_t samples, int64_t global_batch, int64_t microbatch, uint64_t step, ls_step_shape *out);

#endif
