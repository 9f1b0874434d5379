/*
 * op.h - a node bound to memory, and the table of what each kind of node does.
 */
#ifndef LS_GRAPH_OP_H
#define LS_GRAPH_OP_H

#include "base/rng.h"
#include "base/team.h"
#include "graph/graph.h"
#include "kernels/linear.h"

typedef struct ls_op ls_op;

/* One run over a tile of a micro-batch. */
typedef struct ls_pass {
	int64_t n; /* samples of this tile */
	int size;  /* index of n in the executor's sizes */
	int training;
	int accumulate;                    /* add to grads: not the first tile */
	const float *images;               /* this tile's */
	int64_t rows[LS_DOMAINS];          /* tokens and masked positions of this tile */
	const int32_t *start;              /* (n + 1) first token of each sample, as a row of this tile */
	const int32_t *owner;              /* (tokens) which of the n samples a token is of */
	const int32_t *token, *segment;    /* (tokens) */
	const int32_t *masked_at, *target; /* (masked positions) rows of this tile, and ids */
	const int32_t *labels;
	const uint64_t *samples;
	const float *params, *buffers;
	float *grads, *stats;
	int share_grads; /* grads is not the live store but room for one node's gradient */
	uint64_t seed, step;
} ls_pass;

/* What backward will read again. */
enum { LS_KEEP_INPUT = 1, LS_KEEP_OUTPUT = 2, LS_KEEP_OTHERS = 4 }; /* others: second and third */

typedef struct ls_op_kind {
	int (*keeps)(const ls_node *node);
	size_t (*aux_bytes)(const ls_op *op, int64_t n);     /* kept from forward to backward; optional */
	size_t (*scratch_bytes)(const ls_op *op, int64_t n); /* during one call; optional */
	/* Before the first run, for micro-batches of each size on a team of `threads`; optional. */
	ls_status (*prepare)(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads);
	void (*forward)(const ls_op *op, const ls_pass *pass, ls_member member);
	void (*backward)(const ls_op *op, const ls_pass *pass, ls_member member);
	int adds_input; /* backward can add to dx; otherwise the executor gives it a buffer and adds. All can add to
			   dsecond */
} ls_op_kind;

struct ls_op {
	const ls_graph *graph;
	const ls_node *node;
	const ls_op_kind *kind;
	const ls_tensor *in, *out;
	const float *x, *second;
	float *y;
	float *dy;               /* backward may overwrite it */
	float *dx, *dsecond;     /* NULL: not wanted */
	int add_dx, add_dsecond; /* add instead of write */
	float *spare_dx;         /* dx's real place when the kind cannot add */
	const float *third;
	float *dthird; /* attention: written */
	void *aux, *scratch;
	int threads; /* of the team it will run on */
	ls_linear_plan *linear;
	ls_conv_plan *plans; /* conv: one a size */
	const ls_op *norm;   /* conv: who gets the moments */
	const ls_op *conv;   /* norm: who makes them */
	const ls_op *maker;  /* conv: the norm that makes its input anew for backward; NULL: the input was kept */
	float *x_again;      /* conv: where */
	double forward_s, backward_s;
};

const ls_op_kind *ls_op_kind_of(ls_node_kind kind);

/* A parameter row's place. */
static inline const float *ls_op_param(const ls_op *op, const ls_pass *pass, int row)
{
	return row == LS_NONE ? NULL : pass->params + op->graph->params.rows[row].offset;
}

/* Its gradient's place: in the live store, or in the room all nodes share. */
static inline float *ls_op_grad(const ls_op *op, const ls_pass *pass, int row)
{
	const ls_param *rows = op->graph->params.rows;
	if (row == LS_NONE)
		return NULL;
	if (!pass->share_grads)
		return pass->grads + rows[row].offset;
	return pass->grads + ls_graph_shared_place(op->graph, op->node, row);
}

/* Rows of a tensor's panel: positions times samples. Of text, the most that n samples can have. */
static inline int64_t ls_tensor_rows(const ls_tensor *t, int64_t n)
{
	return (int64_t)t->height * t->width * n;
}

/* Rows and floats it has in a pass. */
static inline int64_t ls_pass_rows(const ls_pass *pass, const ls_tensor *t)
{
	return t->domain == LS_SAMPLES ? ls_tensor_rows(t, pass->n) : pass->rows[t->domain];
}
static inline int64_t ls_pass_floats(const ls_pass *pass, const ls_tensor *t)
{
	return ls_pass_rows(pass, t) * t->blocks * t->panel;
}

/* Fixed cutting of `rows` into chunks; chunk sums are combined in chunk order. */
#define LS_CHUNK_ROWS 512
static inline int64_t ls_chunks(int64_t rows)
{
	return (rows + LS_CHUNK_ROWS - 1) / LS_CHUNK_ROWS;
}
static inline int64_t ls_chunk_rows(int64_t rows, int64_t chunk)
{
	int64_t left = rows - chunk * LS_CHUNK_ROWS;
	return left < LS_CHUNK_ROWS ? left : LS_CHUNK_ROWS;
}

/* Shared by layers with a bias: its gradient over panels dy of `rows` rows, by chunk partials in `partial` (blocks,
 * chunks, panel). The first call fills partials; after a barrier the second combines them. */
size_t ls_bias_grad_floats(const ls_tensor *t, int64_t rows);
void ls_bias_grad_partials(const ls_tensor *t, int64_t rows, const float *dy, float *partial, ls_member member);
void ls_bias_grad_combine(const ls_tensor *t, int64_t rows, const float *partial, int accumulate, float *dbias,
			  ls_member member);

/* The numbers a node's dropout draws from in a step. */
static inline ls_rng ls_drop_rng(const ls_op *op, const ls_pass *pass)
{
	return ls_rng_make(pass->seed, LS_RNG_DROPOUT, ls_mix64(pass->step) + (uint64_t)op->node->ordinal);
}

/* Dropout of rows [begin, end) of a value like op->in, in the stream of op's node: to = keep ? from / (1 - p) : 0. The
 * same elements each time; `to` may be `from`. */
void ls_drop_rows(const ls_op *op, const ls_pass *pass, const float *from, float *to, int64_t begin, int64_t end);

/* Where a norm wants the moments of its input's chunks: means (blocks, chunks, panel), then m2. */
float *ls_norm_moments(const ls_op *norm);

/* Write a norm's output, or once more from what its backward keeps anyway: the same bits each time. */
void ls_norm_remake(const ls_op *norm, const ls_pass *pass, float *y, ls_member member);

extern const ls_op_kind ls_op_conv, ls_op_norm, ls_op_relu, ls_op_add, ls_op_max_pool, ls_op_avg_pool, ls_op_flatten,
	ls_op_dropout, ls_op_pack, ls_op_embed, ls_op_linear, ls_op_layer_norm, ls_op_gelu, ls_op_tanh, ls_op_attention,
	ls_op_first, ls_op_mean, ls_op_masked_positions;

#endif
