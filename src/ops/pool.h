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

/* A row of the maps of a channel block: the unit of work. `in` and `out` are the block's floats in the two values. */
typedef struct ls_pool_place {
	int64_t block, in, out;
	int row;
} ls_pool_place;

/* The next one of this thread, of blocks with `rows` rows each; 0: there is none. */
static inline int ls_pool_next(const ls_op *op, const ls_pool_geometry *g, int rows, ls_member member,
			       ls_pool_place *at)
{
	int64_t unit = ls_team_next(member, (int64_t)op->out->blocks * rows), block = unit / rows;
	if (unit < 0)
		return 0;
	*at = (ls_pool_place){ .block = block,
			       .in = block * g->in_h * g->in_w * g->n * g->panel,
			       .out = block * g->out_h * g->out_w * g->n * g->panel,
			       .row = (int)(unit % rows) };
	return 1;
}

#endif
