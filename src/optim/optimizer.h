/*
 * optimizer.h - the update, on any range of the flat store.
 *
 * Element-wise in (parameter, gradient, state), so any split over threads, devices or owners gives the same bits.
 * Gradients are sums over the samples of the step; `scale` (1/samples, times the clipping factor) makes them means.
 *
 * A kind whose step depends on whole parameter tensors (LAMB) works in two phases: `prepare` moves the state and turns
 * the gradient into a direction, and once the norms of all parameters and directions are known `update` goes that way.
 * Norms are taken of runs, a run being what a fixed block and a parameter have in common, and added in their order.
 */
#ifndef LS_OPTIM_OPTIMIZER_H
#define LS_OPTIM_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "params/params.h"

typedef struct ls_hyper {
	double lr, momentum, beta1, beta2, epsilon, weight_decay;
	int nesterov;
} ls_hyper;

/* A run of elements that decay or do not. */
typedef struct ls_update {
	float *params;      /* (count) */
	const float *grads; /* (count) sums; with two phases, `update` finds the direction here */
	float *slots[2];    /* (count) each; as many as the kind has */
	size_t count;
	float scale;   /* gradient multiplier */
	int decay;     /* weight decay applies here */
	uint64_t step; /* 1-based */
	double lr;     /* of this step, from the schedule */
	double ratio;  /* two phases: what `update` multiplies the direction by, beside lr */
	const ls_hyper *hyper;
} ls_update;

#define LS_SLOTS_MAX 2

typedef struct ls_optimizer_kind {
	const char *name, *summary;
	int slots;
	const char *slot_names[LS_SLOTS_MAX]; /* PyTorch's: "exp_avg", "exp_avg_sq", "momentum_buffer" */
	int coupled_decay;    /* weight decay enters the gradient (L2), so dead weights need state when it is on */
	int decay_everything; /* PyTorch decays biases and norms, too; decoupled kinds here skip them */
	int keeps_dead;       /* dead weights count in what is done to the living, so all must be live */
	void (*update)(const ls_update *update);
	void (*prepare)(const ls_update *update, float *grads); /* the first of two phases; NULL: there is one */
} ls_optimizer_kind;

const ls_optimizer_kind *ls_optimizer_at(size_t i); /* NULL past the end */
ls_status ls_optimizer_find(const char *name, const ls_optimizer_kind **out);

/*
 * Apply to elements [begin, end) of the live part: cuts the range at parameter borders to know what decays.
 * `slots` are arrays of `live` floats. Dead weights with decoupled decay: ls_optimizer_decay_dead().
 */
typedef struct ls_optimizer_pass {
	const ls_optimizer_kind *kind;
	const ls_hyper *hyper;
	const ls_param_table *table;
	float *params;      /* (total) */
	const float *grads; /* (live), or the part of it that begins at grads_begin */
	size_t grads_begin;
	float *slots[LS_SLOTS_MAX];
	float scale;
	uint64_t step;
	double lr;
	const double *ratios; /* (table rows) two phases: from ls_optimizer_ratios() */
} ls_optimizer_pass;

void ls_optimizer_apply(const ls_optimizer_pass *pass, size_t begin, size_t end);
void ls_optimizer_decay_dead(const ls_optimizer_pass *pass);

/* Whether dead weights must be in the live part (ls_params_lay_out()). */
int ls_optimizer_needs_dead(const ls_optimizer_kind *kind, const ls_hyper *hyper);

/*
 * The first of two phases. [begin, end) lies in one block; in `grads` (end - begin) gradients become directions (the
 * pass's own are not looked at). `squares` gets the sums of squares of parameter and direction, a pair for each of the
 * range's runs.
 */
size_t ls_optimizer_runs(const ls_param_table *table, size_t begin, size_t end);
void ls_optimizer_prepare(const ls_optimizer_pass *pass, size_t begin, size_t end, float *grads, double *squares);

/* Between the phases, from the pairs of all runs in order: |parameter| / |direction| of weights; 1 where either is 0,
 * and for biases and norms, as in the published implementations. */
void ls_optimizer_ratios(const ls_param_table *table, size_t block, const double *squares, double *ratios);

/* Sum of squares of x over fixed blocks of LS_NORM_BLOCK floats: sums[b] is block b's, in double. Threads take blocks.
 */
#define LS_NORM_BLOCK 16384
size_t ls_norm_blocks(size_t count);
void ls_norm_block_sums(const float *x, size_t count, size_t first_block, size_t last_block, double *sums);
double ls_norm_combine(const double *sums, size_t blocks); /* in block order; returns the sum */

#endif
