/*
 * loader.h - leaves in training order, read ahead by a thread.
 *
 * An epoch is a keyed permutation of [0, n) (seed, epoch), computed per index: no table. Step s of an epoch takes the
 * samples [s*B, min((s+1)*B, n)) of that order, B the global batch, cut into leaves of `leaf` samples; the last step
 * and its last leaf may be short. Every sample comes exactly once an epoch.
 */
#ifndef LS_DATA_LOADER_H
#define LS_DATA_LOADER_H

#include <lockstep/data.h>

typedef struct ls_loader ls_loader;

typedef struct ls_loader_options {
	uint64_t seed;
	int shuffle;                      /* 0: index order */
	int64_t leaf;                     /* samples */
	int64_t global_batch;             /* samples; the last leaf of a step may be short */
	uint64_t start_epoch, start_step; /* the first step to deliver: step start_step of epoch start_epoch */
	int ahead;                        /* leaves read ahead; 0: 4 */
	int single_pass;                  /* end after one epoch */
	int threads;                      /* readers; 0: 1. What is delivered does not depend on it */
} ls_loader_options;

typedef struct ls_leaf {
	int64_t count;           /* samples */
	const float *images;     /* (count, C, H, W) */
	const int32_t *labels;   /* (count) */
	const uint64_t *samples; /* (count) dataset indices */
	uint64_t epoch, step;    /* step within the epoch */
	int64_t leaf;            /* leaf within the step */
	int64_t step_samples;    /* samples of the whole step */
	int last_in_step, last_in_epoch;
} ls_leaf;

ls_status ls_loader_new(ls_loader **out, const ls_dataset *dataset, const ls_loader_options *options);
void ls_loader_free(ls_loader *loader);

/* The next leaf, borrowed until the next call. Sets *out = NULL at the end of a single pass. */
ls_status ls_loader_next(ls_loader *loader, const ls_leaf **out);

/* Steps in an epoch of n samples. */
uint64_t ls_loader_steps(uint64_t samples, int64_t global_batch);

#endif
