/*
 * linear.c - linear layers over rows, with a relu or a gelu behind them. The weight may be borrowed: the words of an
 * embedding. is_transposed is about files alone: in memory all weights lie alike.
 *
 *   y = x w^T + b (then relu or gelu)        x (rows, C), y (rows, O), w (O, C), b (O)
 *   dx = dy w;  dw = dy^T x;  db = sum of dy over rows
 *
 * In bf16 (op.h) x, w and dy are rounded to it where they are multiplied; sums, bias, relu and gelu are fp32.
 *
 * Layers beside each other that read the same x, as queries, keys and values, round it once.
 *
 * aux: the gelu's slope at what it is taken of, made with its value: backward multiplies by it. scratch: a block of
 * weights per thread, in bf16 rounded rows as well, then bias partials.
 */
#include "kernels/linear.h"

#include "kernels/linear_bf16.h"
#include "kernels/simd.h"
#include "ops/shape.h"
#include "params/panel.h"

static ls_param weight_param(int in, const ls_linear_options *o)
{
	int out = o->out_features;
	ls_param row = { .role = LS_ROLE_WEIGHT,
			 .init = ls_param_init_of(o->init),
			 .deviation = o->init_std,
			 .fan_in = in,
			 .rank = 2,
			 .shape = { o->is_transposed ? in : out, o->is_transposed ? out : in } };
	row.layout = (ls_weight_layout){ .out = out,
					 .in = in,
					 .taps = 1,
					 .out_panel = ls_panel_width(out),
					 .in_panel = ls_panel_width(in),
					 .is_transposed = o->is_transposed,
					 .reachable_taps = 1 };
	return row;
}

static ls_status shape(ls_shape *s)
{
	const ls_linear_options *o = s->attributes;
	int in = s->in[0]->channels;

	if (o->out_features < 1)
		return ls_fail(LS_EINVALID, "linear '%s' needs at least one output feature", s->name);
	if (s->borrowed && s->borrowed->layout.in != in)
		return ls_fail(LS_EINVALID, "'%s': the words are %d wide and its input is %d", s->name,
			       s->borrowed->layout.in, in);
	if (ls_too_many_floats(ls_padded(in), ls_padded(o->out_features), 1))
		return ls_fail(LS_EINVALID, "'%s': weights of %d x %d are too large: at most %d floats", s->name,
			       o->out_features, in, LS_FLOATS_MOST);
	if (!(o->init_std >= 0 && o->init_std < 1e6f))
		return ls_fail(LS_EINVALID, "linear '%s': init_std %g is not a deviation", s->name,
			       (double)o->init_std);
	s->out = ls_tensor_like(s->in[0], o->out_features);
	if (!s->borrowed)
		LS_TRY(ls_shape_param(s, LS_WEIGHT, s->name, "weight", weight_param(in, o)));
	if (!o->no_bias)
		LS_TRY(ls_shape_param(s, LS_BIAS, s->name, "bias", ls_bias_param(o->out_features, o->init, in)));
	return LS_OK;
}

static double macs(const ls_cost *cost)
{
	return cost->rows * cost->in->channels * cost->out->channels;
}

static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->activation == LS_ACT_RELU ? LS_KEEP_OUTPUT : 0);
}

static int has_gelu(const ls_op *op)
{
	return op->node->activation == LS_ACT_GELU || op->node->activation == LS_ACT_GELU_TANH;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return has_gelu(op) ? sizeof(float) * (size_t)(ls_tensor_floats(op->out) * n) : 0;
}

static size_t turned_floats(const ls_op *op, int64_t rows)
{
	const ls_tensor *in = op->in[0], *out = op->out;
	return op->bf16 ? ls_linear_bf16_scratch_floats(in->blocks, in->panel, out->blocks, out->panel, rows,
							op->threads)
			: ls_linear_scratch_floats(in->panel, out->panel, op->threads);
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (turned_floats(op, ls_tensor_rows(op->out, n)) + ls_bias_grad_floats(op, n));
}

static ls_status prepare(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads)
{
	(void)sizes, (void)count, (void)threads;
	op->plan = ls_arena_alloc(arena, sizeof(ls_linear_plan));
	if (!op->plan)
		return LS_EMEMORY;
	return ls_linear_plan_make(op->plan, op->in[0]->channels, op->in[0]->panel, op->out->channels, op->out->panel,
				   op->node->borrowed != LS_NONE);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_linear_epilogue epilogue = { .bias = ls_op_param(op, pass, LS_BIAS),
					.relu = op->node->activation == LS_ACT_RELU,
					.kept = has_gelu(op) ? op->aux : NULL,
					.approximate = op->node->activation == LS_ACT_GELU_TANH,
					.keep_slope = pass->training };

	const float *weights = ls_op_param(op, pass, LS_WEIGHT);
	const int64_t rows = ls_pass_rows(pass, op->out);

	if (op->bf16)
		ls_linear_bf16_forward(op->bf16, op->plan, rows, op->before ? NULL : op->x[0], weights, &epilogue,
				       op->y, op->scratch, member);
	else
		ls_linear_forward(op->plan, rows, op->x[0], weights, &epilogue, op->y, op->scratch, member);
}

static void gelu_dy(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_simd_get()->multiply(op->dy + begin, (const float *)op->aux + begin, count, op->dy + begin);
	ls_team_barrier(member);
}

/* ---- bf16: what is done with dy before the products is done while it is near, chunk by chunk ---- */

typedef struct chunk_work {
	const ls_op *op;
	const ls_pass *pass;
	float *partial; /* sums for the bias; NULL: it has no gradient */
} chunk_work;

static void finish_dy(const void *context, int64_t block, int64_t first, int64_t count)
{
	const chunk_work *w = context;
	const ls_op *op = w->op;
	const ls_tensor *t = op->out;
	const int64_t at = (block * ls_pass_rows(w->pass, t) + first) * t->panel, floats = count * t->panel;

	if (op->node->activation == LS_ACT_RELU)
		ls_simd_get()->relu_backward(op->dy + at, op->y + at, floats, op->dy + at);
	else if (op->node->activation)
		ls_simd_get()->multiply(op->dy + at, (const float *)op->aux + at, floats, op->dy + at);
	if (w->partial)
		ls_bias_grad_chunk(op, w->pass, block, first / LS_CHUNK_ROWS, w->partial);
}

_Static_assert(LS_LINEAR_BF16_ROWS == LS_CHUNK_ROWS, "the sums for a bias are of the chunks that are rounded");

/* The node before in backward has paired the rows of x, and in the same form. */
static int x_is_paired(const ls_op *op, const ls_pass *pass)
{
	const ls_op *b = op->behind;
	return b && b->out->needs_gradient && ls_op_grad(b, pass, LS_WEIGHT) &&
	       (b->node->borrowed == LS_NONE) == (op->node->borrowed == LS_NONE);
}

static void backward_bf16(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const int64_t rows = ls_pass_rows(pass, op->out);
	float *partial = (float *)op->scratch + turned_floats(op, rows);
	const int has_bias = ls_op_grad(op, pass, LS_BIAS) != NULL;
	const chunk_work work = { op, pass, has_bias ? partial : NULL };
	const ls_linear_bf16_gradient g = { .x = x_is_paired(op, pass) ? NULL : op->x[0],
					    .dy = op->dy,
					    .weights = ls_op_param(op, pass, LS_WEIGHT),
					    .ready = finish_dy,
					    .context = &work,
					    .dweights = ls_op_grad(op, pass, LS_WEIGHT),
					    .add_dweights = pass->accumulate || op->node->adds_borrowed,
					    .dx = op->dx[0],
					    .add_dx = op->add_dx[0] };

	ls_linear_bf16_backward(op->bf16, op->plan, rows, &g, op->scratch, member);
	if (has_bias)
		ls_bias_grad_combine(op, pass, partial, member);
}

/* ---- fp32 ---- */

static void backward_fp32(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out);
	float *turned = op->scratch, *partial = turned + turned_floats(op, rows);
	float *dw = ls_op_grad(op, pass, LS_WEIGHT);

	if (op->node->activation == LS_ACT_RELU)
		ls_mask_dy(op, pass, member);
	else if (op->node->activation)
		gelu_dy(op, pass, member);
	if (ls_op_grad(op, pass, LS_BIAS))
		ls_bias_grad(op, pass, partial, member);
	if (dw)
		ls_linear_backward_weights(op->plan, rows, op->x[0], op->dy,
					   pass->accumulate || op->node->adds_borrowed, dw, member);
	if (!op->dx[0])
		return;
	ls_team_barrier(member);
	ls_linear_backward_data(op->plan, rows, op->dy, ls_op_param(op, pass, LS_WEIGHT), op->add_dx[0], op->dx[0],
				turned, member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (op->bf16)
		backward_bf16(op, pass, member);
	else
		backward_fp32(op, pass, member);
}

const ls_op_type ls_op_linear = {
	.name = "linear",
	.formula = "y = x weight^T + bias, in each row",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_linear_options, "out_features, no_bias, init, per_position, is_transposed, init_std"),
	.named = 1,
	.fuses = LS_FUSES_RELU | LS_FUSES_GELU,
	.adds = 1,
	.shape = shape,
	.macs = macs,
	.keeps = keeps,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.prepare = prepare,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7, .attributes = &(ls_linear_options){ .out_features = 70 }),
		   LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_linear_options){ .out_features = 9, .no_bias = 1 }) },
};
