/*
 * conv2d.c - convolution, and the linear layer over a whole map, which is the convolution whose kernel covers its
 * input.
 *
 *   y[o, p] = relu?(sum over channels c and taps t of w[o, c, t] x[c, stride p + t - padding] + b[o])
 *   dx[c, q] = sum over o and t of w[o, c, t] dy[o, p], p the position whose tap t is q
 *   dw[o, c, t] = sum over p and samples of dy[o, p] x[c, stride p + t - padding];  db[o] = sum of dy[o, p]
 *
 * x (C, H, W), y (O, H', W'), w (O, C, kernel_h, kernel_w), b (O). With relu, dy counts where y > 0.
 *
 * In bf16 (op.h) x, w and dy are rounded to it where they are multiplied; sums, bias and relu are fp32.
 *
 * A node's attributes are its ls_conv_geometry. aux: patches of a gathered layer (positions, n, patch_floats). scratch:
 * transposed or transformed weights, or in bf16 rounded operands, then bias partials.
 */
#include "kernels/conv_bf16.h"
#include "kernels/winograd.h"

#include <string.h>

#include "ops/shape.h"
#include "params/panel.h"

#define GATHER_CHANNELS 16 /* fewer input channels than this: patches of the bare images instead of panels */

static int takes_input(const ls_tensor *in)
{
	return in->domain == LS_SAMPLES && in->channels < GATHER_CHANNELS;
}

/* The layer's weights, and the patches of a gathered one, per sample. */
static ls_status check_size(const ls_shape *s, const ls_conv_geometry *g)
{
	int64_t taps = (int64_t)g->kernel_h * g->kernel_w, inputs = g->gathered ? g->in_c : ls_padded(g->in_c);

	if (!g->gathered && taps > INT16_MAX)
		return ls_fail(LS_EINVALID, "'%s': a kernel of %dx%d has too many taps; pool its input first", s->name,
			       g->kernel_h, g->kernel_w);
	if (ls_too_many_floats(ls_padded(g->out_c), inputs, taps))
		return ls_fail(LS_EINVALID,
			       "'%s': weights of %d x %d x %d x %d are too large: at most %d floats, padding included",
			       s->name, g->out_c, g->in_c, g->kernel_h, g->kernel_w, LS_FLOATS_MOST);
	if (g->gathered && ls_too_many_floats((int64_t)g->out_h * g->out_w, (g->in_c * taps + 15) / 16 * 16, 1))
		return ls_fail(LS_EINVALID,
			       "'%s': a kernel of %dx%d on an image of %dx%d reads too much; use a larger stride",
			       s->name, g->kernel_h, g->kernel_w, g->in_h, g->in_w);
	return LS_OK;
}

static ls_status weight_param(ls_shape *s, const ls_conv_geometry *g, ls_weight_init init, ls_param *out)
{
	int taps = g->kernel_h * g->kernel_w, reachable = taps;
	int16_t *slot = g->gathered ? NULL : ls_arena_alloc(s->arena, sizeof(*slot) * (size_t)taps);

	if (!g->gathered && !slot)
		return ls_fail(LS_EMEMORY, "no memory for the filter taps");
	if (slot)
		reachable = ls_conv_slots(g, slot);
	*out = (ls_param){ .role = LS_ROLE_WEIGHT,
			   .init = ls_param_init_of(init),
			   .fan_in = g->in_c * taps,
			   .rank = 4,
			   .shape = { g->out_c, g->in_c, g->kernel_h, g->kernel_w },
			   .layout = { .out = g->out_c,
				       .in = g->in_c,
				       .taps = taps,
				       .out_panel = ls_panel_width(g->out_c),
				       .in_panel = g->gathered ? g->in_c * taps : ls_panel_width(g->in_c),
				       .gathered = g->gathered,
				       .reachable_taps = reachable,
				       .slot = slot } };
	return LS_OK;
}

/* `g` has input, output and window; `rank` is the weight's outside. */
static ls_status set_layer(ls_shape *s, ls_conv_geometry g, ls_weight_init init, int bias, int rank)
{
	ls_conv_geometry *kept = ls_arena_alloc(s->arena, sizeof(*kept));
	ls_param weight;

	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for a convolution");
	g.gathered = s->in[0]->is_input;
	LS_TRY(check_size(s, &g));
	LS_TRY(weight_param(s, &g, init, &weight));
	if (rank == 2) {
		weight.rank = 2;
		weight.shape[1] = (int64_t)g.in_c * g.kernel_h * g.kernel_w;
	}
	*kept = g;
	s->attributes = kept;
	s->out = ls_tensor_make(g.out_c, g.out_h, g.out_w, LS_SAMPLES);
	LS_TRY(ls_shape_param(s, LS_WEIGHT, s->name, "weight", weight));
	return bias ? ls_shape_param(s, LS_BIAS, s->name, "bias", ls_bias_param(g.out_c, init, weight.fan_in)) : LS_OK;
}

static ls_status conv_shape(ls_shape *s)
{
	const ls_conv_options *o = s->attributes;
	const ls_tensor *in = s->in[0];
	ls_conv_geometry g = { .in_c = in->channels,
			       .in_h = in->height,
			       .in_w = in->width,
			       .out_c = o->out_channels,
			       .kernel_h = o->kernel_h ? o->kernel_h : o->kernel,
			       .kernel_w = o->kernel_w ? o->kernel_w : o->kernel,
			       .stride = o->stride ? o->stride : 1,
			       .padding = o->padding };

	if (o->out_channels < 1)
		return ls_fail(LS_EINVALID, "conv2d '%s' needs at least one output channel", s->name);
	LS_TRY(ls_check_window(s, g.kernel_h, g.kernel_w, g.stride, g.padding));
	g.out_h = (in->height + 2 * g.padding - g.kernel_h) / g.stride + 1;
	g.out_w = (in->width + 2 * g.padding - g.kernel_w) / g.stride + 1;
	return set_layer(s, g, o->init, !o->no_bias, 4);
}

/* The kernel that covers the whole input: no data moves to flatten it. */
static ls_status linear_shape(ls_shape *s)
{
	const ls_linear_options *o = s->attributes;
	const ls_tensor *in = s->in[0];
	ls_conv_geometry g = { .in_c = in->channels,
			       .in_h = in->height,
			       .in_w = in->width,
			       .out_c = o->out_features,
			       .out_h = 1,
			       .out_w = 1,
			       .kernel_h = in->height,
			       .kernel_w = in->width,
			       .stride = 1 };

	if (o->out_features < 1)
		return ls_fail(LS_EINVALID, "linear '%s' needs at least one output feature", s->name);
	if (o->is_transposed)
		return ls_fail(LS_EINVALID, "linear '%s': is_transposed is for tokens, or with per_position for images",
			       s->name);
	LS_TRY(set_layer(s, g, o->init, !o->no_bias, 2));
	s->params[LS_WEIGHT].deviation = o->init_std;
	return LS_OK;
}

static double macs(const ls_cost *cost)
{
	return ls_conv_macs(cost->node->attributes, cost->count_padding);
}

static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->activation ? LS_KEEP_OUTPUT : 0);
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	const ls_conv_geometry *g = op->node->attributes;
	if (!g->gathered)
		return 0;
	return sizeof(float) * (size_t)((int64_t)g->out_h * g->out_w * n * ls_conv_patch_floats(g));
}

static int is_gathered(const ls_op *op)
{
	return ((const ls_conv_geometry *)op->node->attributes)->gathered;
}

/* Floats of scratch for weights in another form: transposed, rounded, or Winograd's with what its threads need. */
static size_t turned_floats(const ls_op *op, int64_t n)
{
	const ls_conv_geometry *g = op->node->attributes;

	if (op->bf16)
		return ls_conv_bf16_scratch_floats(g, n, &op->params[LS_WEIGHT]->layout, op->threads);
	if (ls_conv_is_winograd(g, op->conv_algorithm))
		return ls_winograd_scratch_floats(g, op->threads);
	return g->gathered ? 0 : op->params[LS_WEIGHT]->count;
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (turned_floats(op, n) + ls_bias_grad_floats(op, n));
}

static ls_status prepare(ls_op *op, ls_arena *arena, const int64_t *sizes, int count, int threads)
{
	ls_conv_plan *plans = op->plan = ls_arena_alloc(arena, sizeof(*plans) * (size_t)count);
	if (!plans)
		return LS_EMEMORY;
	for (int i = 0; i < count; i++)
		LS_TRY(ls_conv_plan_make(&plans[i], arena, op->node->attributes, op->conv_algorithm, sizes[i],
					 &op->params[LS_WEIGHT]->layout, threads));
	return LS_OK;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_conv_plan *plan = (const ls_conv_plan *)op->plan + pass->size;
	ls_conv_epilogue epilogue = { .bias = ls_op_param(op, pass, LS_BIAS),
				      .relu = op->node->activation == LS_ACT_RELU };
	const float *x = op->x[0];

	if (is_gathered(op)) {
		ls_conv_gather(op->node->attributes, pass->n, pass->images, op->aux, member);
		ls_team_barrier(member);
		x = op->aux;
	}
	if (op->moments_to && pass->training) {
		epilogue.mean = ls_batch_norm_moments(op->moments_to);
		epilogue.m2 = epilogue.mean + plan->forward.tiles * plan->forward.blocks * plan->forward.panel;
	}
	if (op->bf16)
		ls_conv_bf16_forward(op->bf16, plan, x, ls_op_param(op, pass, LS_WEIGHT), &epilogue, op->y, op->scratch,
				     member);
	else if (plan->winograd)
		ls_winograd_forward(plan, x, ls_op_param(op, pass, LS_WEIGHT), &epilogue, op->scratch, op->y, member);
	else
		ls_conv_forward(plan, x, ls_op_param(op, pass, LS_WEIGHT), &epilogue, op->y, member);
}

/* Unreachable taps, where they are trained anyway (coupled weight decay wants that): their gradient is
 * zero. */
static void zero_unreachable(const ls_op *op, const ls_conv_plan *plan, float *dweights, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	int64_t reachable = (int64_t)plan->reachable_taps * f->blocks * f->source_blocks * f->source_panel * f->panel;
	int64_t begin, end;

	ls_team_range(member, (int64_t)op->params[LS_WEIGHT]->count - reachable, &begin, &end);
	memset(dweights + reachable + begin, 0, sizeof(float) * (size_t)(end - begin));
}

static void backward_data(const ls_op *op, const ls_pass *pass, const ls_conv_plan *plan, ls_member member)
{
	const float *weights = ls_op_param(op, pass, LS_WEIGHT);
	if (op->bf16)
		ls_conv_bf16_backward_data(op->bf16, plan, op->dy, weights, op->add_dx[0], op->dx[0], op->scratch,
					   member);
	else if (plan->winograd)
		ls_winograd_backward_data(plan, op->dy, weights, op->scratch, op->add_dx[0], op->dx[0], member);
	else
		ls_conv_backward_data(plan, op->dy, weights, op->scratch, op->add_dx[0], op->dx[0], member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_conv_plan *plan = (const ls_conv_plan *)op->plan + pass->size;
	float *partial = (float *)op->scratch + turned_floats(op, pass->n);
	const float *x = is_gathered(op) ? op->aux : op->maker ? op->x_again : op->x[0];
	float *dweights = ls_op_grad(op, pass, LS_WEIGHT);

	if (op->maker && dweights) {
		op->maker->type->remake(op->maker, pass, op->x_again, member);
		ls_team_barrier(member);
	}
	if (op->node->activation)
		ls_mask_dy(op, pass, member);
	if (ls_op_grad(op, pass, LS_BIAS))
		ls_bias_grad(op, pass, partial, member);
	if (op->dx[0]) {
		backward_data(op, pass, plan, member);
		ls_team_barrier(member);
	}
	if (!dweights)
		return;
	zero_unreachable(op, plan, dweights, member);
	if (op->bf16)
		ls_conv_bf16_backward_weights(op->bf16, plan, x, op->dy, pass->accumulate, dweights, op->scratch,
					      member);
	else if (plan->winograd)
		ls_winograd_backward_weights(plan, x, op->dy, op->scratch, pass->accumulate, dweights, member);
	else
		ls_conv_backward_weights(plan, x, op->dy, pass->accumulate, dweights, member);
}

/* What the two have in common: all but the shape rule. */
#define CONVOLUTION                                                                                                    \
	LS_INPUTS(1, "x"),                                                                                             \
		.named = 1, .fuses = LS_FUSES_RELU | LS_GIVES_BIAS | LS_MAKES_MOMENTS | LS_TAKES_REMADE_INPUT,         \
		.adds = 1, .maps = 1, .takes_input = takes_input, .macs = macs, .keeps = keeps,                        \
		.aux_bytes = aux_bytes, .scratch_bytes = scratch_bytes, .prepare = prepare, .forward = forward,        \
		.backward = backward

const ls_op_type ls_op_conv2d = {
	.name = "conv2d",
	.formula = "y[o, p] = sum over channels c and taps t of weight[o, c, t] x[c, p + t], + bias[o]",
	LS_ATTRIBUTES(ls_conv_options, "out_channels, kernel, kernel_h, kernel_w, stride, padding, no_bias, init"),
	.shape = conv_shape,
	CONVOLUTION,
	.cases = { LS_CASE_IMAGES(3, 6, 5, .raw = 1,
				  .attributes = &(ls_conv_options){ .out_channels = 20, .kernel = 3, .padding = 1 }),
		   LS_CASE_IMAGES(20, 6, 5,
				  .attributes = &(ls_conv_options){ .out_channels = 18,
								    .kernel_h = 2,
								    .kernel_w = 3,
								    .stride = 2,
								    .no_bias = 1 }) },
};

const ls_op_type ls_op_linear_map = {
	.name = "linear_map",
	.formula = "y = flatten(x) weight^T + bias: ls_linear() of an image",
	LS_ATTRIBUTES(ls_linear_options, "out_features, no_bias, init"),
	.shape = linear_shape,
	CONVOLUTION,
	.cases = { LS_CASE_IMAGES(3, 4, 5, .raw = 1, .attributes = &(ls_linear_options){ .out_features = 20 }),
		   LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_linear_options){ .out_features = 20 }) },
};
