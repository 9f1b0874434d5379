/*
 * op.h - operators: one file and one row each.
 *
 * A file of this folder has everything about its operator: attributes, shape rule (the value it produces and the
 * parameters it owns), cost, memory, forward, backward, and cases for the gradient check. It ends with its row, an
 * ls_op_type. A loss is an operator without an output. The list of rows is in include/lockstep/operators.h: the public
 * builder, the table (table.c), the gradient check and the check of docs/operators.md follow from it.
 *
 * A row does not know the graph. A shape rule works on an ls_shape (shape.h); a run on an ls_op, which is a node bound
 * to memory, and an ls_pass, which is a tile of a micro-batch.
 *
 * Values have rows and channels. Rows are the positions of all images of a tile, its tokens, its masked positions, or
 * its samples (an image of one position). Most operators work on rows and do not care which; those that need maps say
 * so in their row (`maps`).
 */
#ifndef LS_OPS_OP_H
#define LS_OPS_OP_H

#include <lockstep/operators.h>

#include "base/rng.h"
#include "base/team.h"
#include "params/params.h"

/* What the rows of a value are. */
typedef enum ls_domain {
	LS_SAMPLES, /* positions times samples: [blocks][H][W][N][panel] */
	LS_TOKENS,  /* tokens of the tile, packed end to end: [blocks][tokens][panel]; height is the most per sample */
	LS_MASKED,  /* masked positions of the tile, packed as tokens are */
	LS_DOMAINS
} ls_domain;

const char *ls_domain_name(ls_domain domain); /* "one row per token" */

/* What a node produced: (channels, height, width) per sample, stored as panels. */
typedef struct ls_tensor {
	int channels, height, width;
	int panel, blocks;
	ls_domain domain;
	int is_input;       /* sample-major images straight from the loader, or token ids */
	int is_constant;    /* does not depend on parameters: has no gradient */
	int needs_gradient; /* it depends on a parameter that is trained (graph/freeze.c) */
} ls_tensor;

static inline int64_t ls_tensor_floats(const ls_tensor *t) /* per sample */
{
	return (int64_t)t->blocks * t->panel * t->height * t->width;
}

/* Rows of a tensor's panel: positions times samples. Of text, the most that n samples can have. */
static inline int64_t ls_tensor_rows(const ls_tensor *t, int64_t n)
{
	return (int64_t)t->height * t->width * n;
}

#define LS_NONE (-1)
enum { LS_INPUTS_MAX = 3, LS_PARAMS_MAX = 5, LS_OP_CASES_MAX = 4 };
enum { LS_WEIGHT, LS_BIAS }; /* the first two parameters of most operators */

typedef struct ls_op_type ls_op_type;
typedef struct ls_op ls_op;
typedef struct ls_span ls_span; /* pointwise.h */

typedef enum ls_activation { LS_ACT_NONE, LS_ACT_RELU, LS_ACT_GELU, LS_ACT_GELU_TANH } ls_activation;

/* An operator in a graph. Values and parameters are indices of the graph's tables, or LS_NONE. */
typedef struct ls_node {
	const ls_op_type *type;
	const char *name; /* layer name, or the type's for layers without parameters */
	int inputs[LS_INPUTS_MAX];
	int input_count;
	int output; /* LS_NONE: a loss */
	int params[LS_PARAMS_MAX];
	const void *attributes; /* what the type's shape rule left */
	int stream;             /* of random numbers, where the type draws */

	/* A weight that two nodes share: the borrower has it in `borrowed` and LS_NONE in params[LS_WEIGHT]. Its
	 * gradient is final when the owner has added its part. */
	int borrowed;
	int adds_borrowed; /* a later node borrows the same weight and has written its gradient before */
	int lends;         /* some node borrows params[LS_WEIGHT] */

	/* What fusion adds (graph/fuse.c); a residual that was absorbed is one input more. */
	ls_activation activation; /* of the output */
	float dropout;            /* of inputs[0], in `stream` */
	int moments_to;           /* node id of the batch norm that wants the moments of the output */
	int dropped;              /* fused away, or never read */
} ls_node;

/* One run over a tile of a micro-batch. */
typedef struct ls_pass {
	int64_t n; /* samples of this tile */
	int size;  /* index of n in the executor's sizes */
	int training;
	int accumulate;                    /* add to grads: not the first tile */
	const float *images;               /* this tile's */
	int64_t rows[LS_DOMAINS];          /* tokens and masked positions of this tile */
	const int32_t *start;              /* (n + 1) first token of each sample, as a row of this tile */
	const int32_t *owner;              /* (tokens) which of the n samples a token belongs to */
	const int32_t *token, *segment;    /* (tokens) */
	const int32_t *masked_at, *target; /* (masked positions) rows of this tile, and ids */
	const int32_t *past;               /* (n) tokens of each sample that are in `cache`; NULL: none is kept */
	const struct ls_kv_cache *cache;   /* kv_cache.h; its sample cache_first is the first of this tile */
	int64_t cache_first;
	const int32_t *labels;
	const float *targets; /* (n, target_count) in place of labels; NULL: none */
	int target_count;
	int64_t first_row[LS_DOMAINS]; /* rows of the micro-batch before this tile */
	float row_weight[LS_DOMAINS];  /* of a row's loss in the step's */
	const uint64_t *samples;
	const float *params, *buffers;
	float *grads, *stats;
	int share_grads; /* grads is not the store but memory for one node's gradient */
	uint64_t seed, step;
} ls_pass;

/* What backward reads again. */
enum { LS_KEEP_INPUT = 1, LS_KEEP_OUTPUT = 2, LS_KEEP_OTHERS = 4 }; /* others: all inputs but the first */

/* What a type can do together with its neighbours; graph/fuse.c has the rules. */
enum {
	LS_FUSES_RELU = 1,           /* relu of its output */
	LS_FUSES_GELU = 2,           /* gelu of its output */
	LS_FUSES_SUM_BEHIND = 4,     /* adds another value to its output */
	LS_FUSES_SUM_BEFORE = 8,     /* adds another value to its input, and drops out the input */
	LS_FUSES_BIAS = 16,          /* takes over the bias and relu of the convolution before it */
	LS_GIVES_BIAS = 32,          /* is that convolution */
	LS_MAKES_MOMENTS = 64,       /* can compute the moments of its output for a batch norm */
	LS_TAKES_MOMENTS = 128,      /* is that batch norm */
	LS_TAKES_REMADE_INPUT = 256, /* backward can use an input that its producer makes again (`remake`) */
};

/*
 * One graph for the gradient check: a trained layer for each input of the operator, the operator, a head and a loss.
 * `domain` and (channels, height, width) are of the inputs; images are `height` x `width`, sentences up to `height`
 * long.
 */
typedef struct ls_op_case {
	ls_domain domain;
	int channels, height, width;
	int raw; /* the operator reads the graph's input itself */
	const void *attributes;
	int targets; /* of a loss: the samples have float targets */
} ls_op_case;

/* Images of (channels, height, width); tokens, up to `longest` per sample. Other fields may follow. */
#define LS_CASE_IMAGES(c, h, w, ...)                                                                                   \
	{                                                                                                              \
		.channels = c, .height = h, .width = w, __VA_ARGS__                                                    \
	}
#define LS_CASE_TOKENS(c, longest, ...)                                                                                \
	{                                                                                                              \
		.domain = LS_TOKENS, .channels = c, .height = longest, .width = 1, __VA_ARGS__                         \
	}

typedef struct ls_cost {
	const ls_node *node;
	const ls_tensor *in, *out;
	double rows;       /* of the first input, per sample */
	int count_padding; /* count taps outside the image, as usually published */
} ls_cost;

struct ls_shape;

struct ls_op_type {
	const char *name;       /* the public builder is ls_<name>(), unless the list says otherwise */
	const char *formula;    /* for docs/operators.md, as are these: */
	const char *inputs;     /* "x" */
	const char *attributes; /* "heads, dropout"; NULL: none */
	int input_count;
	size_t attribute_bytes; /* of what the builder passes */
	unsigned fuses;         /* LS_FUSES_... */
	unsigned adds;   /* bit k: backward can add to dx[k]; otherwise the executor gives it a buffer and adds */
	int is_loss;     /* has no output: forward writes a loss per row, and dx[0] while training */
	int lone_labels; /* of a loss: labels that one channel can stand for; 0: one, as every channel of several does
			  */
	int maps;        /* needs spatial maps: works on images only */
	int couples;     /* mixes the samples of a micro-batch, which must then run as a whole */
	int named;       /* has parameters, whose names begin with the layer's */
	/* Works on the graph's bare input; optional: it does not, and images are put into panels for it. */
	int (*takes_input)(const ls_tensor *in);
	ls_status (*shape)(struct ls_shape *shape);
	double (*macs)(const ls_cost *cost); /* multiply-adds of forward per sample; optional: none that count */
	int (*keeps)(const ls_node *node);   /* optional: backward reads no value again */
	size_t (*aux_bytes)(const ls_op *op, int64_t n);     /* kept from forward to backward; optional */
	size_t (*scratch_bytes)(const ls_op *op, int64_t n); /* during one call; optional */
	/* Before the first run, for micro-batches of each size on a team of `threads`; optional. */
	ls_status (*prepare)(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads);
	/* Of operators that work on each number by itself (pointwise.h), whose forward and backward are the same. */
	void (*value)(const ls_span *span), (*slope)(const ls_span *span);
	int moves_zero; /* value of 0 is not 0 */
	void (*forward)(const ls_op *op, const ls_pass *pass, ls_member member);
	void (*backward)(const ls_op *op, const ls_pass *pass, ls_member member); /* optional: it has no gradient */
	/* Recompute the output from what is kept for backward: the same bits each time; optional. */
	void (*remake)(const ls_op *op, const ls_pass *pass, float *y, ls_member member);
	ls_op_case cases[LS_OP_CASES_MAX]; /* for the gradient check; channels 0 ends the list */
};

/* A node bound to memory. */
struct ls_op {
	const ls_node *node;
	const ls_op_type *type;
	const ls_param *params[LS_PARAMS_MAX]; /* NULL: none; a borrowed weight is here as well */
	size_t shared_at[LS_PARAMS_MAX];       /* offsets of their gradients where nodes share memory */
	const ls_tensor *in[LS_INPUTS_MAX], *out;
	const float *x[LS_INPUTS_MAX];
	float *y;
	float *dy;                       /* backward may overwrite it */
	float *dx[LS_INPUTS_MAX];        /* NULL: not wanted */
	int add_dx[LS_INPUTS_MAX];       /* add instead of write; a node gives to its last input first */
	float *dx_target[LS_INPUTS_MAX]; /* where the executor adds dx to, for a type that cannot */
	void *aux, *scratch;
	int threads;                        /* of the team it will run on */
	const struct ls_bf16_kernels *bf16; /* products have operands in bf16 (graph.h); NULL: in fp32 */
	int conv_algorithm;                 /* of convolutions: an ls_conv_algorithm; in bf16 always direct */
	void *plan;                         /* what `prepare` made */
	const ls_op *moments_to;            /* conv: the batch norm that gets the moments */
	const ls_op *moments_from;          /* batch norm: the convolution that computes them */
	/* The nodes that run right before and after this one forward, where they are of its type and read the same
	 * x[0]: what they made of it may still be in the scratch, which all nodes share. Else NULL. */
	const ls_op *before, *behind;
	const ls_op *maker; /* the node that recomputes x[0] for backward; NULL: it was kept */
	float *x_again;     /* where */
	float *loss;        /* losses: (rows of the micro-batch) */
	uint8_t *correct;   /* losses: (rows of the micro-batch) the prediction is right */
	double forward_s, backward_s;
};

/* Parts of a row: the number of inputs and their names, the struct of attributes and its fields. */
#define LS_INPUTS(count, names) .input_count = (count), .inputs = (names)
#define LS_ATTRIBUTES(type, names) .attribute_bytes = sizeof(type), .attributes = (names)

/* The table, in the order of include/lockstep/operators.h; NULL past the end. */
const ls_op_type *ls_op_type_at(int i);

#define LS_OP_ROW(name, ...) extern const ls_op_type ls_op_##name;
LS_OPERATORS(LS_OP_ROW, LS_OP_ROW, LS_OP_ROW, LS_OP_ROW, LS_OP_ROW, LS_OP_ROW, LS_OP_ROW, LS_OP_ROW)
#undef LS_OP_ROW

/* precision.c: in which precision an operator multiplies, and whether the processor has instructions for it: they are
 * emulated otherwise, to the same bits. Attention multiplies in bf16 in the precision of that name alone. */
typedef enum ls_precision {
	LS_PRECISION_FP32,
	LS_PRECISION_BF16,
	LS_PRECISION_BF16_AMX,
	LS_PRECISION_BF16_LAYERS, /* bf16 of earlier versions: attention in fp32. Their runs continue in it */
	LS_PRECISION_COUNT
} ls_precision;
const struct ls_bf16_kernels *ls_op_bf16_kernels(ls_precision precision, const ls_op_type *type); /* NULL: fp32 */
int ls_op_precision_is_native(ls_precision precision);

/* Operations per second of a layer on this thread, measured for some 20 ms; 0 of those without instructions, and
 * nothing is measured where there are none for bf16. */
ls_status ls_op_product_rates(double rates[LS_PRECISION_COUNT]);

/* The node itself trains this parameter: it is neither borrowed nor a buffer nor frozen. */
static inline int ls_op_trains(const ls_op *op, int slot)
{
	return op->node->params[slot] != LS_NONE && ls_param_has_gradient(op->params[slot]);
}

/* A parameter's place. */
static inline const float *ls_op_param(const ls_op *op, const ls_pass *pass, int slot)
{
	return op->params[slot] ? pass->params + op->params[slot]->offset : NULL;
}

/* Its gradient's place: in the store, or in the memory that all nodes share. NULL: it has none, or is frozen, and
 * backward need not compute it. */
static inline float *ls_op_grad(const ls_op *op, const ls_pass *pass, int slot)
{
	if (!op->params[slot] || !ls_param_has_gradient(op->params[slot]))
		return NULL;
	return pass->grads + (pass->share_grads ? op->shared_at[slot] : op->params[slot]->offset);
}

/* A batch norm with weight and bias frozen is frozen as a whole: it normalises by its running statistics, as in
 * evaluation, and leaves them as they are. */
static inline int ls_op_is_frozen_norm(const ls_op *op)
{
	return op->params[LS_WEIGHT]->is_frozen && op->params[LS_BIAS]->is_frozen;
}

/* Rows and floats a value has in a pass. */
static inline int64_t ls_pass_rows(const ls_pass *pass, const ls_tensor *t)
{
	return t->domain == LS_SAMPLES ? ls_tensor_rows(t, pass->n) : pass->rows[t->domain];
}
static inline int64_t ls_pass_floats(const ls_pass *pass, const ls_tensor *t)
{
	return ls_pass_rows(pass, t) * t->blocks * t->panel;
}

/* The rows of sample i: first, first + stride, ... */
typedef struct ls_sample_rows {
	int64_t first, stride, count;
} ls_sample_rows;
static inline ls_sample_rows ls_pass_sample(const ls_pass *pass, const ls_tensor *t, int64_t i)
{
	if (t->domain == LS_SAMPLES)
		return (ls_sample_rows){ .first = i, .stride = pass->n, .count = (int64_t)t->height * t->width };
	return (ls_sample_rows){ .first = pass->start[i], .stride = 1, .count = pass->start[i + 1] - pass->start[i] };
}

/* Float of channel c in row r of a value that has `rows` rows. */
static inline int64_t ls_row_at(const ls_tensor *t, int64_t rows, int64_t r, int64_t c)
{
	return (c / t->panel * rows + r) * t->panel + c % t->panel;
}

/* What a loss works on in a pass: labels of rows, and where its results go. */
typedef struct ls_loss_rows {
	int64_t count;
	const int32_t *labels;
	const float *targets; /* (count, channels) in place of labels; NULL: labels */
	float scale;          /* of gradients */
	float *loss;
	uint8_t *correct;
	float *dx; /* NULL: not wanted */
} ls_loss_rows;
static inline ls_loss_rows ls_loss_rows_of(const ls_op *op, const ls_pass *pass)
{
	ls_domain domain = op->in[0]->domain;
	int takes_targets = domain == LS_SAMPLES && op->in[0]->channels == pass->target_count;
	return (ls_loss_rows){ .count = ls_pass_rows(pass, op->in[0]),
			       .labels = domain == LS_MASKED ? pass->target : pass->labels,
			       .targets = takes_targets ? pass->targets : NULL,
			       .scale = pass->row_weight[domain],
			       .loss = op->loss + pass->first_row[domain],
			       .correct = op->correct + pass->first_row[domain],
			       .dx = pass->training ? op->dx[0] : NULL };
}

/* What row i asks of channel c, for losses that compare channels: its float target, or of a label 1 for the label's own
 * channel, and the label itself where there is one channel. */
static inline float ls_loss_target(const ls_tensor *t, const ls_loss_rows *r, int64_t i, int c)
{
	if (r->targets)
		return r->targets[i * t->channels + c];
	return t->channels == 1 ? (float)r->labels[i] : (float)(r->labels[i] == c);
}

/* The class of row i: its label, or the first of its greatest float targets. */
int ls_loss_class(const ls_tensor *t, const ls_loss_rows *r, int64_t i);

/* loss.c: forward of a loss that is a mean over channels. A row's prediction is the channel with the greatest value;
 * with one channel, and with float targets where `each` says so, `is_right` compares channel by channel. `row`
 * returns the sum of the terms of row i and writes their gradients to r->dx, unless that is NULL; padded channels are
 * zeroed for it. */
typedef struct ls_channel_loss {
	int (*is_right)(float x, float target);
	float (*row)(const ls_op *op, const ls_loss_rows *r, int64_t i);
	int each; /* float targets are independent answers: all of them must be right */
} ls_channel_loss;
void ls_channel_loss_forward(const ls_op *op, const ls_pass *pass, ls_member member, const ls_channel_loss *loss);

/* This thread's floats of a value, for element-wise operators: whole cache lines. */
enum { LS_LINE = 16 };
static inline void ls_pass_share(const ls_pass *pass, const ls_tensor *t, ls_member member, int64_t *begin,
				 int64_t *count)
{
	int64_t end;
	ls_team_range(member, ls_pass_floats(pass, t) / LS_LINE, begin, &end);
	*count = (end - *begin) * LS_LINE;
	*begin *= LS_LINE;
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

/* common.c: what several operators share. */

/* What a row's `keeps` is for many: backward reads the input, the output, or the output where a relu was fused. */
int ls_keeps_input(const ls_node *node);
int ls_keeps_output(const ls_node *node);
int ls_keeps_activated(const ls_node *node);

/* The gradient of a bias: db[c] = sum of dy[c] over rows, by chunk partials in `partial` (blocks, chunks, panel), whose
 * floats for n samples are none where there is no bias. Synchronises inside. */
size_t ls_bias_grad_floats(const ls_op *op, int64_t n);
void ls_bias_grad(const ls_op *op, const ls_pass *pass, float *partial, ls_member member);
/* Its two halves: the sums of a chunk of rows of a block of dy, and when all are there, their sum. */
void ls_bias_grad_chunk(const ls_op *op, const ls_pass *pass, int64_t block, int64_t chunk, float *partial);
void ls_bias_grad_combine(const ls_op *op, const ls_pass *pass, const float *partial, ls_member member);

/* dy back through the relu that was fused behind an operator; synchronises behind. */
void ls_mask_dy(const ls_op *op, const ls_pass *pass, ls_member member);

/* Row from[i] of x, or row i where `from` is NULL, becomes row i of y; and its gradient, which is zero in rows that
 * were not taken. */
void ls_gather_rows(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member);
void ls_scatter_rows(const ls_op *op, const ls_pass *pass, const int32_t *from, ls_member member);

/* Zero what lies in padded channels of floats [begin, begin + count) of y, a value like t with `rows` rows. */
void ls_zero_padding(const ls_tensor *t, int64_t rows, float *y, int64_t begin, int64_t count);

/* The first channel of row i with the greatest value. */
int ls_row_maximum(const ls_tensor *t, const float *x, int64_t rows, int64_t i);

/* to = g or to += g; nothing when `to` is NULL. */
void ls_give(float *to, int add, const float *g, int64_t count);

/* dropout.c */

/* The numbers a node's dropout draws from in a step. */
static inline ls_rng ls_drop_rng(const ls_op *op, const ls_pass *pass)
{
	return ls_rng_make(pass->seed, LS_RNG_DROPOUT, ls_mix64(pass->step) + (uint64_t)op->node->stream);
}

/* Dropout of rows [begin, end) of a value like op->in[0], in the stream of op's node: to = keep ? from / (1 - p) : 0.
 * The same elements each time; `to` may be `from`. */
void ls_drop_rows(const ls_op *op, const ls_pass *pass, float probability, const float *from, float *to, int64_t begin,
		  int64_t end);

/* batch_norm.c: where it wants the moments of its input's chunks: means (blocks, chunks, panel), then m2. */
float *ls_batch_norm_moments(const ls_op *norm);

#endif
