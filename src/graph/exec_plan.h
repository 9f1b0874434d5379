/*
 * exec_plan.h - inside of an executor: its nodes bound to one planned block of memory.
 */
#ifndef LS_GRAPH_EXEC_PLAN_H
#define LS_GRAPH_EXEC_PLAN_H

#include "graph/exec.h"
#include "graph/op.h"
#include "graph/place.h"

struct ls_exec {
	const ls_graph *graph;
	ls_team *team;
	ls_arena arena;
	int profile, paused, inference;
	int64_t slice; /* samples a pass covers */
	int64_t sizes[2 * LS_SIZES_MAX];
	int size_count;  /* sizes of passes, distinct */
	int64_t largest; /* of them */
	int64_t leaf;    /* largest leaf */
	ls_op *ops;
	int op_count;
	ls_span *spans; /* values, gradients, aux, spare: see exec_plan.c */
	size_t span_count;
	size_t live_bytes; /* of them at once, at most */
	size_t scratch_bytes;
	char *workspace;
	size_t workspace_bytes;
	float *logits, *dlogits;
	float *loss;      /* (leaf) */
	uint8_t *correct; /* (leaf) */

	/* text */
	float *token_logits, *dtoken_logits; /* the same place, where backward does not read the logits again */
	float *token_loss;                   /* (leaf * picks_max) */
	uint8_t *token_correct;              /* likewise */
	int32_t *start;                      /* (largest + 1) of the slice under way: see ls_pass */
	int32_t *owner;                      /* (largest * tokens_max) */
	int32_t *pick;                       /* (largest * picks_max) */
};

#endif
