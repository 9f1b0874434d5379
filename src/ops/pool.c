/*
 * pool.c - the shape rule of poolings.
 */
#include "ops/pool.h"
#include "kernels/simd.h"

static ls_status set_window(ls_shape *s, int kernel_h, int kernel_w, int stride, int padding)
{
	const ls_tensor *in = s->in[0];
	ls_pool_geometry *g = ls_arena_alloc(s->arena, sizeof(*g));

	if (!g)
		return ls_fail(LS_EMEMORY, "no memory for a pooling");
	*g = (ls_pool_geometry){ .in_h = in->height,
				 .in_w = in->width,
				 .out_h = (in->height + 2 * padding - kernel_h) / stride + 1,
				 .out_w = (in->width + 2 * padding - kernel_w) / stride + 1,
				 .kernel_h = kernel_h,
				 .kernel_w = kernel_w,
				 .stride = stride,
				 .padding = padding };
	s->attributes = g;
	s->out = ls_tensor_make(in->channels, g->out_h, g->out_w, LS_SAMPLES);
	return LS_OK;
}

ls_status ls_pool_shape(ls_shape *s)
{
	const ls_pool_options o = *(const ls_pool_options *)s->attributes;
	int stride = o.stride ? o.stride : o.kernel;

	LS_TRY(ls_check_window(s, o.kernel, o.kernel, stride, o.padding));
	if (o.padding * 2 > o.kernel || o.kernel > 15)
		return ls_fail(LS_EINVALID,
			       "%s: padding %d must be at most half of kernel %d, and the kernel at most 15",
			       s->type->name, o.padding, o.kernel);
	return set_window(s, o.kernel, o.kernel, stride, o.padding);
}

ls_status ls_pool_shape_global(ls_shape *s)
{
	return set_window(s, s->in[0]->height, s->in[0]->width, 1, 0);
}
