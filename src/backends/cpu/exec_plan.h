/*
 * exec_plan.h - internals of an executor: its nodes bound to one planned block of memory.
 */
#ifndef LS_BACKENDS_CPU_EXEC_PLAN_H
#define LS_BACKENDS_CPU_EXEC_PLAN_H

#include "backends/cpu/exec.h"
#include "backends/cpu/place.h"
#include "ops/op.h"

struct ls_exec {
	ls_executor executor; /* first: what a backend's user holds */
	const ls_graph *graph;
	ls_team *team;
	int threads; /* of the team */
	ls_arena arena;
	int profile, paused, inference;
	int64_t tile; /* samples that a pass covers */
	int64_t sizes[2 * LS_SIZES_MAX];
	int size_count;     /* sizes of passes, distinct */
	int64_t largest;    /* of them */
	int64_t microbatch; /* largest micro-batch */
	ls_op *ops;
	int op_count;
	ls_span *spans; /* a table per class: see exec_spans.c */
	size_t span_count;
	size_t live_bytes; /* of them at once, at most */
	size_t scratch_bytes;
	char *workspace;
	size_t workspace_bytes;
	const float *params, *buffers; /* the host's stores */
	ls_op losses[LS_LOSSES_MAX];   /* their dx may lie where x does: see ls_exec_is_own_gradient() */
	int loss_count;
	const float *logits; /* what the graph predicts */

	/* text */
	int32_t *start;     /* (largest + 1) of the tile under way: see ls_pass */
	int32_t *owner;     /* (largest * tokens_max) */
	int32_t *masked_at; /* (largest * masked_max) */
};

/* exec_spans.c */

enum { LS_SPAN_VALUE, LS_SPAN_GRADIENT, LS_SPAN_AUX, LS_SPAN_SPARE, LS_SPAN_RECOMPUTED, LS_SPAN_CLASSES };

/* By value, or by node for aux, spare and recomputed. */
ls_span *ls_exec_span(const ls_exec *exec, int class, int index);

/* Images and what is made of them without parameters have no gradient. */
int ls_exec_has_gradient(const ls_exec *exec, int value);
/* The gradient takes the place of the value. */
int ls_exec_is_own_gradient(const ls_exec *exec, int value);

/* In this order. */
ls_status ls_exec_check_microbatch(const ls_exec *exec);
ls_status ls_exec_make_ops(ls_exec *exec);
ls_status ls_exec_plan_memory(ls_exec *exec);

/* exec_bind.c */

size_t ls_exec_whole_bytes(const ls_exec *exec);
ls_status ls_exec_bind(ls_exec *exec);

#endif
