/*
 * trainer.h - a model on a device with its optimizer: leaves in, updates out.
 *
 *     for each leaf of a step: ls_trainer_leaf()    forward, backward; sums join the tree
 *     ls_trainer_update()                           mean, clip, optimizer, running statistics
 *
 * What it holds is all that a step changes, so a checkpoint is this plus a position in the data. Nothing here knows
 * where leaves come from, or prints.
 */
#ifndef LS_TRAIN_TRAINER_H
#define LS_TRAIN_TRAINER_H

#include "base/team.h"
#include "data/loader.h"
#include "exchange/pieces.h"
#include "graph/exec.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

typedef struct ls_trainer_options {
	ls_graph *graph;  /* borrowed; finished */
	int64_t leaf;     /* largest leaf */
	int64_t tails[2]; /* other leaf sizes that will come, 0: none */
	int64_t leaves;   /* most leaves a step has */
	int threads;
	const char *optimizer;
	ls_hyper hyper;
	ls_schedule_options schedule;
	double clip_norm;
	uint64_t seed;
	int profile;
} ls_trainer_options;

typedef struct ls_trainer {
	const ls_graph *graph;
	ls_team *team;
	ls_exec *exec;
	const ls_optimizer_kind *kind;
	ls_hyper hyper;
	ls_schedule_options schedule;
	double clip_norm;
	uint64_t seed;
	float *params;              /* (total) */
	float *buffers, *stats;     /* (buffers) running statistics; one leaf's */
	double *stat_sums;          /* (buffers) over the leaves of the step */
	ls_pieces pieces;           /* of gradients (live), or of what one layer at a time needs */
	float *slots[LS_SLOTS_MAX]; /* (live) */
	double *norm_sums;          /* one a norm block */
	uint64_t step;              /* updates done */
	int64_t batches_tracked;
	int update_early; /* a step is one leaf and is not clipped: update as backward goes */
	int share_grads;  /* and gradients need no memory of their own beyond that */
	double update_s;  /* time spent in updates */
	/* of the step under way */
	int64_t samples, correct;
	double loss;
	double gradient_norm; /* of the last update, when clipping is on */
} ls_trainer;

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options);
void ls_trainer_free(ls_trainer *trainer);

/* Fill in initial parameters. */
ls_status ls_trainer_init(ls_trainer *trainer);

/* One leaf of the step under way; step_samples is the whole step's. */
void ls_trainer_leaf(ls_trainer *trainer, const ls_leaf *leaf);
void ls_trainer_update(ls_trainer *trainer);

ls_status ls_trainer_fingerprint(const ls_trainer *trainer, uint64_t *out);

/* Every parameter and statistic is a finite number. */
int ls_trainer_finite(const ls_trainer *trainer);

/* Bytes a trainer would take, by class; the sum is what the machine must have. */
typedef struct ls_trainer_bytes {
	size_t params, gradients, state, workspace;
} ls_trainer_bytes;
ls_status ls_trainer_plan(const ls_trainer_options *options, ls_trainer_bytes *out);

#endif
