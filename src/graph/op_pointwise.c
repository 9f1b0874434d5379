/*
 * op_pointwise.c - layers that touch each element once: relu, add, dropout, and the two changes of layout.
 *
 *   relu     y = max(0, x)                     dx = dy where y > 0
 *   add      y = relu?(a + b)                  da = db = dy (where y > 0)
 *   dropout  y = keep ? x / (1 - p) : 0        dx = keep ? dy / (1 - p) : 0; keep is drawn again from the counters
 *   pack     images (n, C, H, W) -> panels     the images have no gradient
 *   flatten  panels (C, H, W) -> panels (C*H*W, 1, 1), PyTorch's order
 */
#include "graph/op.h"

#define LINE 16 /* floats: members take whole cache lines */

static int keeps_output(const ls_node *node)
{
	return node->relu ? LS_KEEP_OUTPUT : 0;
}

static int keeps_nothing(const ls_node *node)
{
	(void)node;
	return 0;
}

/* This member's floats of a tensor. */
static void share(const ls_tensor *t, const ls_pass *pass, ls_member member, int64_t *begin, int64_t *count)
{
	int64_t end;
	ls_team_range(member, ls_pass_floats(pass, t) / LINE, begin, &end);
	*count = (end - *begin) * LINE;
	*begin *= LINE;
}

static void relu_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op->out, pass, member, &begin, &count);
	for (int64_t i = begin; i < begin + count; i++)
		op->y[i] = op->x[i] < 0 ? 0 : op->x[i]; /* NaN stays NaN */
}

static void relu_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op->out, pass, member, &begin, &count);
	if (op->dx)
		ls_simd_get()->relu_backward(op->dy + begin, op->y + begin, count, op->dx + begin);
}

const ls_op_kind ls_op_relu = { .keeps = keeps_output, .forward = relu_forward, .backward = relu_backward };

static void add_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op->out, pass, member, &begin, &count);
	ls_simd_get()->add(op->x + begin, op->second + begin, count, op->node->relu, op->y + begin);
}

/* Hand the masked gradient to one operand. */
static void give(float *to, int accumulate, const float *g, int64_t count)
{
	if (!to)
		return;
	if (accumulate)
		ls_simd_get()->accumulate(to, g, count);
	else
		for (int64_t i = 0; i < count; i++)
			to[i] = g[i];
}

static void add_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	share(op->out, pass, member, &begin, &count);
	if (op->node->relu)
		ls_simd_get()->relu_backward(op->dy + begin, op->y + begin, count, op->dy + begin);
	give(!op->dsecond ? NULL : op->dsecond + begin, op->add_dsecond, op->dy + begin, count);
	give(!op->dx ? NULL : op->dx + begin, op->add_dx, op->dy + begin, count);
}

const ls_op_kind ls_op_add = {
	.keeps = keeps_output, .forward = add_forward, .backward = add_backward, .adds_input = 1
};

/* Row r of tokens or masked positions is a token of the tile. Token p of its sample, channel c: element p * channels +
 * c, so that it does not matter who its neighbours are. */
void ls_drop_rows(const ls_op *op, const ls_pass *pass, const float *from, float *to, int64_t begin, int64_t end)
{
	ls_rng rng = ls_drop_rng(op, pass);
	int64_t panel = op->in->panel, blocks = op->in->blocks, rows = ls_pass_rows(pass, op->in);
	const ls_simd *simd = ls_simd_get();

	for (int64_t b = 0; b < blocks; b++)
		for (int64_t r = begin; r < end; r++) {
			int64_t token = op->in->domain == LS_MASKED ? pass->masked_at[r] : r;
			int32_t sample = pass->owner[token];
			simd->dropout(from + (b * rows + r) * panel, (int)panel, rng.key[0], rng.key[1],
				      pass->samples[sample],
				      (uint64_t)(((token - pass->start[sample]) * blocks + b) * panel),
				      op->node->probability, to + (b * rows + r) * panel);
		}
}

/* Both directions: the same elements are kept. */
static void drop(const ls_op *op, const ls_pass *pass, const float *from, float *to, ls_member member)
{
	ls_rng rng = ls_drop_rng(op, pass);
	int64_t panel = op->in->panel, rows = (int64_t)op->in->blocks * op->in->height * op->in->width, begin, end;
	const ls_simd *simd = ls_simd_get();

	if (op->in->domain != LS_SAMPLES) {
		ls_team_range(member, ls_pass_rows(pass, op->in), &begin, &end);
		ls_drop_rows(op, pass, from, to, begin, end);
		return;
	}
	ls_team_range(member, rows * pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		simd->dropout(from + i * panel, (int)panel, rng.key[0], rng.key[1], pass->samples[i % pass->n],
			      (uint64_t)(i / pass->n * panel), op->node->probability, to + i * panel);
}

static void dropout_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	if (pass->training) {
		drop(op, pass, op->x, op->y, member);
		return;
	}
	share(op->out, pass, member, &begin, &count);
	give(op->y + begin, 0, op->x + begin, count);
}

static void dropout_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (op->dx)
		drop(op, pass, op->dy, op->dx, member);
}

const ls_op_kind ls_op_dropout = { .keeps = keeps_nothing, .forward = dropout_forward, .backward = dropout_backward };

/* Float of channel c at position p of sample i in panels. */
static int64_t place(const ls_tensor *t, int64_t n, int64_t c, int64_t p, int64_t i)
{
	return ((c / t->panel * t->height * t->width + p) * n + i) * t->panel + c % t->panel;
}

static void pack_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *t = op->out;
	int64_t positions = (int64_t)t->height * t->width, padded = (int64_t)t->blocks * t->panel, begin, end;

	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t c = 0; c < padded; c++)
			for (int64_t p = 0; p < positions; p++)
				op->y[place(t, pass->n, c, p, i)] =
					c < t->channels ? pass->images[(i * t->channels + c) * positions + p] : 0;
}

static void nothing(const ls_op *op, const ls_pass *pass, ls_member member)
{
	(void)op, (void)pass, (void)member;
}

const ls_op_kind ls_op_pack = { .keeps = keeps_nothing, .forward = pack_forward, .backward = nothing };

/* Feature f = c * positions + p of the flat side is channel c at position p of the other. */
static void flatten_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in, *out = op->out;
	int64_t positions = (int64_t)in->height * in->width, padded = (int64_t)out->blocks * out->panel, begin, end;

	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t f = 0; f < padded; f++)
			op->y[place(out, pass->n, f, 0, i)] =
				f < out->channels ? op->x[place(in, pass->n, f / positions, f % positions, i)] : 0;
}

static void flatten_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *in = op->in, *out = op->out;
	int64_t positions = (int64_t)in->height * in->width, padded = (int64_t)in->blocks * in->panel, begin, end;

	if (!op->dx)
		return;
	ls_team_range(member, pass->n, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t c = 0; c < padded; c++)
			for (int64_t p = 0; p < positions; p++)
				op->dx[place(in, pass->n, c, p, i)] =
					c < in->channels ? op->dy[place(out, pass->n, c * positions + p, 0, i)] : 0;
}

const ls_op_kind ls_op_flatten = { .keeps = keeps_nothing, .forward = flatten_forward, .backward = flatten_backward };

const ls_op_kind *ls_op_kind_of(ls_node_kind kind)
{
	static const ls_op_kind *const kinds[LS_NODE_KIND_COUNT] = {
		[LS_NODE_PACK] = &ls_op_pack,
		[LS_NODE_CONV] = &ls_op_conv,
		[LS_NODE_NORM] = &ls_op_norm,
		[LS_NODE_RELU] = &ls_op_relu,
		[LS_NODE_ADD] = &ls_op_add,
		[LS_NODE_MAX_POOL] = &ls_op_max_pool,
		[LS_NODE_AVG_POOL] = &ls_op_avg_pool,
		[LS_NODE_FLATTEN] = &ls_op_flatten,
		[LS_NODE_DROPOUT] = &ls_op_dropout,
		[LS_NODE_EMBED] = &ls_op_embed,
		[LS_NODE_LINEAR] = &ls_op_linear,
		[LS_NODE_LAYER_NORM] = &ls_op_layer_norm,
		[LS_NODE_GELU] = &ls_op_gelu,
		[LS_NODE_TANH] = &ls_op_tanh,
		[LS_NODE_ATTENTION] = &ls_op_attention,
		[LS_NODE_FIRST] = &ls_op_first,
		[LS_NODE_MEAN] = &ls_op_mean,
		[LS_NODE_MASKED] = &ls_op_masked_positions,
	};
	return kinds[kind];
}
