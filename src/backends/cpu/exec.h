/*
 * exec.h - run a graph on one device: forward and backward of a micro-batch.
 *
 * Invariants
 *  1. All memory is planned in ls_exec_new(); running a micro-batch allocates nothing and generates no code.
 *  2. Outputs are sums over the micro-batch's samples: gradients, loss, correct predictions.
 *  3. Nothing depends on the number of threads: threads share outputs, never parts of a sum, or sum fixed chunks that
 *     are combined in chunk order.
 *  4. A graph without batch statistics, whose samples are independent, runs a micro-batch in tiles of LS_TILE samples
 *     that stay in cache, adding gradients tile by tile, in order.
 */
#ifndef LS_BACKENDS_CPU_EXEC_H
#define LS_BACKENDS_CPU_EXEC_H

#include "backends/backend.h"

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

/* The parameters (total) and running statistics (buffers; inference reads them), from now on. */
void ls_exec_set_params(ls_exec *exec, const float *params, const float *buffers);

void ls_exec_train(ls_exec *exec, ls_exec_microbatch *microbatch);

/* Forward with running statistics. Loss and correct as above; `logits` (count, classes) may be NULL. */
void ls_exec_infer(ls_exec *exec, ls_exec_microbatch *microbatch, float *logits);

/* The plan for people: a line per class of memory, then one per layer. */
ls_status ls_exec_print_plan(const ls_graph *graph, int64_t n, int threads, FILE *to);
size_t ls_exec_workspace(const ls_exec *exec);

/* Layer i, with options.profile; 0 past the end. */
int ls_exec_layer_times(const ls_exec *exec, int i, ls_layer_times *out);
void ls_exec_pause_profile(ls_exec *exec, int pause);

#endif
