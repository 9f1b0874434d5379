/*
 * shape.c - what shape rules share.
 */
#include "ops/shape.h"

#include "params/panel.h"

const char *ls_domain_name(ls_domain domain)
{
	static const char *const names[LS_DOMAINS] = { [LS_SAMPLES] = "one row per sample",
						       [LS_TOKENS] = "one row per token",
						       [LS_MASKED] = "one row per masked position" };
	return names[domain];
}

ls_tensor ls_tensor_make(int channels, int height, int width, ls_domain domain)
{
	return (ls_tensor){ .channels = channels,
			    .height = height,
			    .width = width,
			    .panel = ls_panel_width(channels),
			    .blocks = ls_panel_blocks(channels),
			    .domain = domain };
}

ls_tensor ls_tensor_like(const ls_tensor *t, int channels)
{
	return ls_tensor_make(channels, t->height, t->width, t->domain);
}

int64_t ls_padded(int channels)
{
	int panel = ls_panel_width(channels);
	return ((int64_t)channels + panel - 1) / panel * panel;
}

int ls_too_many_floats(int64_t a, int64_t b, int64_t c)
{
	int64_t ab, abc;
	return __builtin_mul_overflow(a, b, &ab) || __builtin_mul_overflow(ab, c, &abc) || abc > LS_FLOATS_MOST;
}

ls_status ls_shape_param(ls_shape *shape, int slot, const char *layer, const char *suffix, ls_param row)
{
	row.name = ls_arena_format(shape->arena, "%s.%s", layer, suffix);
	if (!row.name)
		return ls_fail(LS_EMEMORY, "no memory for the name of a parameter");
	shape->params[slot] = row;
	return LS_OK;
}

ls_param ls_vector_param(int length, ls_param_role role, ls_param_init init, int fan_in)
{
	ls_param row = { .role = role, .init = init, .fan_in = fan_in, .rank = 1, .shape = { length } };
	row.layout = (ls_weight_layout){ .out = length,
					 .in = 1,
					 .taps = 1,
					 .out_panel = ls_panel_width(length),
					 .in_panel = 1,
					 .reachable_taps = 1 };
	return row;
}

ls_param ls_bias_param(int length, ls_weight_init init, int fan_in)
{
	return ls_vector_param(length, LS_ROLE_BIAS, init == LS_WEIGHTS_UNIFORM ? LS_INIT_UNIFORM_FAN_IN : LS_INIT_ZERO,
			       fan_in);
}

ls_param_init ls_param_init_of(ls_weight_init init)
{
	switch (init) {
	case LS_WEIGHTS_HE_FAN_OUT:
		return LS_INIT_HE_FAN_OUT;
	case LS_WEIGHTS_HE_FAN_IN:
		return LS_INIT_HE_FAN_IN;
	case LS_WEIGHTS_ZERO:
		return LS_INIT_ZERO;
	case LS_WEIGHTS_NORMAL:
		return LS_INIT_NORMAL;
	default:
		return LS_INIT_UNIFORM_FAN_IN;
	}
}

ls_status ls_check_sample_rows(const ls_shape *shape)
{
	for (int k = 0; k < shape->type->input_count; k++)
		if (shape->in[k]->domain == LS_MASKED || (shape->in[k]->domain == LS_SAMPLES && shape->tokens_max > 0))
			return ls_fail(LS_EINVALID, "%s needs one row per token, or images", shape->type->name);
	return LS_OK;
}

ls_status ls_check_window(const ls_shape *shape, int kernel_h, int kernel_w, int stride, int padding)
{
	const ls_tensor *in = shape->in[0];
	const char *open = shape->name ? " '" : "", *close = shape->name ? "'" : "";
	const char *name = shape->name ? shape->name : "", *what = shape->type->name;

	if (kernel_h < 1 || kernel_w < 1 || stride < 1 || padding < 0 || kernel_h > 255 || kernel_w > 255 ||
	    padding > 255)
		return ls_fail(LS_EINVALID,
			       "%s%s%s%s: kernel %dx%d, stride %d, padding %d is not possible (at most 255)", what,
			       open, name, close, kernel_h, kernel_w, stride, padding);
	if (in->height + 2 * padding < kernel_h || in->width + 2 * padding < kernel_w)
		return ls_fail(LS_EINVALID, "%s%s%s%s: kernel %dx%d is larger than its input of %dx%d with padding %d",
			       what, open, name, close, kernel_h, kernel_w, in->height, in->width, padding);
	return LS_OK;
}

ls_status ls_check_loss_rows(ls_shape *shape)
{
	const ls_tensor *in = shape->in[0];
	if (in->domain == LS_TOKENS || in->height * in->width != (in->domain == LS_MASKED ? shape->masked_max : 1))
		return ls_fail(LS_EINVALID,
			       "%s: logits must be (classes, 1, 1) or one row per masked position, not %s(%d, %d, %d)",
			       shape->type->name, in->domain == LS_TOKENS ? "one row per token, " : "", in->channels,
			       in->height, in->width);
	return LS_OK;
}

ls_status ls_shape_same(ls_shape *shape)
{
	const ls_tensor *a = shape->in[0], *b = shape->type->input_count == 2 ? shape->in[1] : a;

	if (a->domain != b->domain)
		return ls_fail(LS_EINVALID, "%s: one operand has %s, the other %s", shape->type->name,
			       ls_domain_name(a->domain), ls_domain_name(b->domain));
	if (a->channels != b->channels || a->height != b->height || a->width != b->width)
		return ls_fail(LS_EINVALID, "%s: %dx%dx%d and %dx%dx%d have different shapes", shape->type->name,
			       a->channels, a->height, a->width, b->channels, b->height, b->width);
	shape->out = ls_tensor_like(a, a->channels);
	return LS_OK;
}

ls_status ls_shape_one_row(ls_shape *shape)
{
	LS_TRY(ls_check_sample_rows(shape));
	shape->out = ls_tensor_make(shape->in[0]->channels, 1, 1, LS_SAMPLES);
	return LS_OK;
}
