/*
 * optimizer.h - the update of parameters, on any range of the flat store.
 *
 * An optimizer is one file, optimizers/NAME.c, with a row of type ls_optimizer_kind, and one line in table.h.
 *
 * Invariants
 *  1. Element-wise in (parameter, gradient, state), without contraction and without branches that change a sum: any
 *     split over threads, devices or shard owners and every instruction set gives the same bits.
 *  2. An element whose parameter, gradient and state are zero stays zero, which keeps the padding of blocked weights
 *     clean.
 *  3. Gradients are sums over the samples of the step; `scale` (1/samples, times the clipping factor) makes them means.
 *
 * The step of an optimizer with a `direction` (LAMB) depends on norms of whole parameter tensors. It takes a norm pass:
 * `direction` advances the state and turns the gradient into a direction; once the norms of all parameters and
 * directions are known, `update` moves the parameters. Norms are sums over runs, a run being what a fixed block and a
 * parameter have in common, added in the order of runs.
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

#define LS_SLOTS_MAX 2
#define LS_HYPERS_MAX 4

/* A range of elements that all decay or all do not. */
typedef struct ls_update {
	float *params;              /* (count) */
	const float *grads;         /* (count) sums; after a norm pass `update` finds the directions here */
	float *slots[LS_SLOTS_MAX]; /* (count) each; as many as the optimizer has */
	size_t count;
	float scale;   /* gradient multiplier */
	int decay;     /* weight decay applies here */
	uint64_t step; /* 1-based */
	double lr;     /* of this step, from the schedule */
	double ratio;  /* after a norm pass: weight norm / direction norm */
	const ls_hyper *hyper;
} ls_update;

typedef enum ls_decay {
	LS_DECAY_COUPLED,  /* added to the gradient (L2), of every parameter, as PyTorch does */
	LS_DECAY_DECOUPLED /* p = (1 - lr*weight_decay)*p, of weights alone: not of biases and normalisations */
} ls_decay;

/* The row of an optimizer. */
typedef struct ls_optimizer_kind {
	const char *name, *summary;
	int slots;
	const char *slot_names[LS_SLOTS_MAX]; /* PyTorch's: "exp_avg", "exp_avg_sq", "momentum_buffer" */
	struct {
		const char *name; /* the setting's: "beta1" */
		double value;     /* default */
	} hypers[LS_HYPERS_MAX];  /* what it uses beside lr and weight_decay; unused entries have no name */
	ls_decay decay;
	void (*update)(const ls_update *update);
	void (*direction)(const ls_update *update, float *grads); /* NULL: it takes no norm pass */
} ls_optimizer_kind;

const ls_optimizer_kind *ls_optimizer_at(size_t i);          /* NULL past the end */
const ls_optimizer_kind *ls_optimizer_of(int isa, size_t i); /* for an instruction set; NULL: this build lacks it */
const char *ls_optimizer_name_at(size_t i);                  /* NULL past the end */
ls_status ls_optimizer_find(const char *name, const ls_optimizer_kind **out);

/* The default of a hyper-parameter of the optimizer named so; NULL: it has no such one, or there is no such optimizer.
 */
const double *ls_optimizer_default(const char *optimizer, const char *hyper);

/*
 * Apply to elements [begin, end) of the reachable part: cuts the range at parameter borders to know what decays.
 * `slots` are arrays of `reachable` floats. Unreachable weights with decoupled decay: ls_optimizer_decay_unreachable().
 */
typedef struct ls_optimizer_pass {
	const ls_optimizer_kind *kind;
	const ls_hyper *hyper;
	const ls_param_table *table;
	float *params;      /* (total) */
	const float *grads; /* (reachable), or the part of it that begins at grads_begin */
	size_t grads_begin;
	float *slots[LS_SLOTS_MAX];
	float scale;
	uint64_t step;
	double lr;
	const double *ratios; /* (table rows) after a norm pass: from ls_optimizer_ratios() */

	/* The exponential moving average of parameters, which follows each update: as PyTorch's AveragedModel with
	 * get_ema_multi_avg_fn(decay), the first update copies. NULL: none. */
	float *average; /* (reachable) */
	double decay;
} ls_optimizer_pass;

void ls_optimizer_apply(const ls_optimizer_pass *pass, size_t begin, size_t end);
void ls_optimizer_decay_unreachable(const ls_optimizer_pass *pass);

/* Whether unreachable weights need gradient and state, as if they were reachable (ls_params_lay_out()). */
int ls_optimizer_needs_unreachable(const ls_optimizer_kind *kind, const ls_hyper *hyper);

/*
 * The norm pass. [begin, end) lies in one block; in `grads` (end - begin) gradients become directions (pass->grads is
 * not read). `squares` gets the sums of squares of parameter and direction, a pair for each run in the range.
 */
size_t ls_optimizer_runs(const ls_param_table *table, size_t begin, size_t end);
void ls_optimizer_norm_pass(const ls_optimizer_pass *pass, size_t begin, size_t end, float *grads, double *squares);

/* From the pairs of all runs in order: |parameter| / |direction| of weights; 1 where either is 0, and for biases and
 * normalisations, as in the published implementations. */
void ls_optimizer_ratios(const ls_param_table *table, size_t block, const double *squares, double *ratios);

/* Sum of squares of x over fixed blocks of LS_NORM_BLOCK floats: sums[b] is block b's, in double. Threads take blocks.
 */
#define LS_NORM_BLOCK 16384
size_t ls_norm_blocks(size_t count);
void ls_norm_block_sums(const float *x, size_t count, size_t first_block, size_t last_block, double *sums);
double ls_norm_combine(const double *sums, size_t blocks); /* in block order; returns the sum */

#endif
