/*
 * pool.h - what poolings share: their attributes are a geometry once the shape rule is done.
 */
#ifndef LS_OPS_POOL_H
#define LS_OPS_POOL_H

#include "kernels/simd.h"
#include "ops/shape.h"

/* Of ls_pool_options; and of a window that is the whole map. */
ls_status ls_pool_shape(ls_shape *shape);
ls_status ls_pool_shape_global(ls_shape *shape);

static inline ls_pool_geometry ls_pool_geometry_of(const ls_op *op, int64_t n)
{
	ls_pool_geometry g = *(const ls_pool_geometry *)op->node->attributes;
	g.n = n;
	g.panel = op->out->panel;
	return g;
}

#endif
