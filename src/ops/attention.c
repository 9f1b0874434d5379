/*
 * attention.c - multi-head attention: every row of a sample (token or position) looks at all rows of its
 * sample, or with is_causal at those up to itself.
 *
 *   p = softmax(q k^T / sqrt(W)), d = dropout(p), y = d v        in each head; q, k, v, y (rows, heads W)
 *   dv = d^T dy;  dd = dy v^T;  dp = dropout(dd);  ds = p (dp - sum of dp p over keys) / sqrt(W)
 *   dq = ds k;  dk = ds^T q
 *
 * The work is the kernel's (kernels/attention.h).
 *
 * In bf16 (op.h) both operands of every product are rounded to it; sums and the softmax are fp32.
 *
 * aux: the logarithm of each row's sum of exponentials, from which backward makes the probabilities again.
 */
#include <math.h>
#include <string.h>

#include "kernels/attention.h"
#include "ops/kv_cache.h"
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	const ls_attention_options *o = s->attributes;
	int channels = s->in[0]->channels;
	int width = o->num_heads > 0 && channels % o->num_heads == 0 ? channels / o->num_heads : 0;

	LS_TRY(ls_check_sample_rows(s));
	for (int k = 0; k < 3; k++) {
		const ls_tensor *t = s->in[k], *q = s->in[0];
		if (t->channels != channels || t->height != q->height || t->width != q->width)
			return ls_fail(LS_EINVALID,
				       "attention: q, k and v must be of one width, and have the same rows");
		if (t->is_constant)
			return ls_fail(LS_EINVALID, "attention: q, k and v must come from layers, not from the input");
	}
	if (!(o->dropout >= 0 && o->dropout < 1))
		return ls_fail(LS_EINVALID, "attention: dropout %g is not in [0, 1)", (double)o->dropout);
	if (width != 16 && width != 32 && width != 64)
		return ls_fail(LS_EINVALID, "attention: %d heads in a width of %d; a head must be 16, 32 or 64 wide",
			       o->num_heads, channels);
	s->draws = o->dropout > 0;
	s->out = ls_tensor_like(s->in[0], channels);
	return LS_OK;
}

/* What the mathematics needs: scores that backward computes once more are not counted. */
static double macs(const ls_cost *cost)
{
	const ls_attention_options *o = cost->node->attributes;
	double keys = o->is_causal ? (cost->rows + 1) / 2 : cost->rows; /* that a row sees, on average */
	return 2 * cost->rows * keys * cost->in->channels;
}

static const ls_attention_options *options(const ls_op *op)
{
	return op->node->attributes;
}

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT | LS_KEEP_OTHERS | LS_KEEP_OUTPUT;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)(options(op)->num_heads * ls_tensor_rows(op->in[0], n));
}

static int head_width(const ls_op *op)
{
	return op->in[0]->channels / options(op)->num_heads;
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	(void)n;
	return sizeof(float) * ls_attention_scratch_floats(head_width(op), ls_tensor_rows(op->in[0], 1), op->threads);
}

static ls_attention_plan attention_of(const ls_op *op, const ls_pass *pass)
{
	ls_rng rng = ls_drop_rng(op, pass);
	return (ls_attention_plan){ .heads = options(op)->num_heads,
				    .width = head_width(op),
				    .rows = ls_pass_rows(pass, op->in[0]),
				    .panel = op->in[0]->panel,
				    .start = op->in[0]->domain == LS_TOKENS ? pass->start : NULL,
				    .positions = op->in[0]->height * op->in[0]->width,
				    .samples = pass->n,
				    .causal = options(op)->is_causal,
				    .scale = 1.0f / sqrtf((float)head_width(op)),
				    .bf16 = op->bf16,
				    .probability = pass->training ? options(op)->dropout : 0,
				    .key = { rng.key[0], rng.key[1] },
				    .sample = pass->samples };
}

/* The keys or values of this pass behind those that are there. */
static void keep_rows(const ls_op *op, const ls_pass *pass, const float *x, float *kept, ls_member member)
{
	const ls_tensor *t = op->in[0];
	int64_t rows = ls_pass_rows(pass, t), kept_rows = pass->cache->samples * pass->cache->room, begin, end;

	ls_team_range(member, rows, &begin, &end);
	for (int64_t r = begin; r < end; r++) {
		int32_t owner = pass->owner[r];
		int64_t to =
			(pass->cache_first + owner) * pass->cache->room + pass->past[owner] + r - pass->start[owner];
		for (int64_t b = 0; b < t->blocks; b++)
			memcpy(kept + (b * kept_rows + to) * t->panel, x + (b * rows + r) * t->panel,
			       sizeof(float) * (size_t)t->panel);
	}
}

static void forward_cached(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_kv_layer *layer = ls_kv_cache_layer(pass->cache, op->node);
	const ls_tensor *t = op->in[0];
	ls_attention_plan a = attention_of(op, pass);
	int64_t before = pass->cache_first * pass->cache->room * t->panel; /* of the samples before this tile */

	keep_rows(op, pass, op->x[1], layer->keys, member);
	keep_rows(op, pass, op->x[2], layer->values, member);
	ls_team_barrier(member);
	a.past = pass->past;
	a.key_rows = pass->cache->samples * pass->cache->room;
	a.key_room = pass->cache->room;
	ls_attention_forward(&a, op->x[0], layer->keys + before, layer->values + before, op->y, op->aux, op->scratch,
			     member);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (pass->cache) {
		forward_cached(op, pass, member);
		return;
	}
	ls_attention_plan a = attention_of(op, pass);
	ls_attention_forward(&a, op->x[0], op->x[1], op->x[2], op->y, op->aux, op->scratch, member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_attention_plan a = attention_of(op, pass);
	ls_attention_backward(&a, op->x[0], op->x[1], op->x[2], op->y, op->aux, op->dy, op->dx[0], op->dx[1], op->dx[2],
			      op->scratch, member);
}

const ls_op_type ls_op_attention = {
	.name = "attention",
	.formula = "y = dropout(softmax(q k^T / sqrt(head width))) v, in each head",
	LS_INPUTS(3, "q, k, v"),
	LS_ATTRIBUTES(ls_attention_options, "num_heads, dropout, is_causal"),
	.shape = shape,
	.macs = macs,
	.keeps = keeps,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(32, 3, 4, .attributes = &(ls_attention_options){ .num_heads = 2 }),
		   LS_CASE_TOKENS(32, 7,
				  .attributes =
					  &(ls_attention_options){ .num_heads = 2, .dropout = 0.2f, .is_causal = 1 }),
		   LS_CASE_TOKENS(48, 7, .attributes = &(ls_attention_options){ .num_heads = 3 }),
		   LS_CASE_TOKENS(32, 7, .attributes = &(ls_attention_options){ .num_heads = 1, .dropout = 0.3f }) },
};
