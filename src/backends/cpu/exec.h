/*
 * exec.h - run a graph on one device: forward and backward of a micro-batch.
 *
 * Invariants
 *  1. All memory is planned in ls_exec_new(); running a micro-batch allocates nothing and generates no code.
 *  2. Outputs are sums over the micro-batch's samples: gradients, loss, correct predictions.
 *  3. Nothing depends on the number of threads: members share outputs, never parts of a sum, or sum fixed chunks that
 * are combined in chunk order.
 *  4. A graph whose samples do not meet (no batch statistics) runs a micro-batch in tiles of LS_TILE samples that stay
 *     in
 * cache, adding gradients tile by tile, in order. The tile is part of the mathematics and never depends on the
 * machine.
 */
#ifndef LS_BACKENDS_CPU_EXEC_H
#define LS_BACKENDS_CPU_EXEC_H

#include <stdint.h>
#include <stdio.h>

#include "base/team.h"
#include "graph/graph.h"
#include "params/packed.h"

#define LS_TILE 64
#define LS_SIZES_MAX 6

typedef struct ls_exec ls_exec;

typedef struct ls_exec_options {
	int64_t sizes[LS_SIZES_MAX]; /* micro-batch sizes that will be run, 0 ends the list: the whole micro-batch, the
					tail, ... */
	ls_team *team;               /* borrowed */
	int inference;               /* forward only, running statistics */
	int profile;                 /* time every node */
} ls_exec_options;

ls_status ls_exec_new(ls_exec **out, const ls_graph *graph, const ls_exec_options *options);
void ls_exec_free(ls_exec *exec);

/* Bytes ls_exec_new() would take for micro-batches of n samples on a team of `threads`, without taking them. */
ls_status ls_exec_bytes(const ls_graph *graph, int64_t n, int threads, int inference, size_t *bytes);

/* One micro-batch in, its sums out. */
typedef struct ls_exec_microbatch {
	int64_t count;
	const float *images;     /* (count, C, H, W); NULL: text */
	const ls_packed *text;   /* NULL: images */
	double token_weight;     /* samples of the step a token to be predicted in it: makes sums over tokens means */
	const int32_t *labels;   /* (count) */
	const uint64_t *samples; /* (count) dataset indices, for dropout */
	const float *params;     /* whole store */
	const float *buffers;    /* running statistics; inference reads them */
	float *grads;            /* (live) written, not added to; or, with share_grads, (ls_exec_shared_grads()) */
	int share_grads;         /* a gradient lives only until `ready` has returned for it; one tile a micro-batch */
	float *stats;            /* (buffers) the micro-batch's mean and unbiased variance; training writes them */
	uint64_t seed, step;     /* dropout's key */
	/* Called by every member before parameters [begin, end) are read by forward; may be NULL. A micro-batch that
	 * runs in tiles asks again for each. */
	void (*need)(void *context, size_t begin, size_t end, ls_member member);
	void *need_context;
	/* Called by member 0 when a node is done: for a timeline; may be NULL. */
	void (*span)(void *context, const char *node, int is_backward, double begin_s, double end_s);
	void *span_context;
	/* Called by every member when the gradient of elements [begin, end) is final for this micro-batch (`grads`
	 * points at begin's) and params [begin, end) are no longer read; may be NULL. */
	void (*ready)(void *context, size_t begin, size_t end, const float *grads, ls_member member);
	void *ready_context;
	/* out */
	double loss; /* sum of cross-entropy over samples, and token_weight times that over tokens to be predicted */
	int64_t correct;
	double token_loss;     /* sum over tokens to be predicted */
	int64_t token_correct; /* of them */
} ls_exec_microbatch;

void ls_exec_train(ls_exec *exec, ls_exec_microbatch *microbatch);

/* Floats of gradient memory that share_grads needs for micro-batches of up to `microbatch` samples: the largest node's,
 * and shared words. 0: such micro-batches run in tiles, whose sums must stay. */
size_t ls_exec_shared_grads(const ls_graph *graph, int64_t microbatch);

/* Forward with running statistics. Loss and correct as above; `logits` (count, classes) may be NULL. */
void ls_exec_infer(ls_exec *exec, ls_exec_microbatch *microbatch, float *logits);

/* What the plan holds, for people: one line a class of memory, then one a layer when `layers`. */
ls_status ls_exec_print_plan(const ls_graph *graph, int64_t n, int threads, FILE *to);
size_t ls_exec_workspace(const ls_exec *exec);

/* Times of all runs that were not paused, with options.profile; node i's name or NULL past the end. */
const char *ls_exec_profile(const ls_exec *exec, int i, double *forward_s, double *backward_s, double *macs_per_sample);
void ls_exec_profile_pause(ls_exec *exec, int pause);

#endif
