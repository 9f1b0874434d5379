/*
 * linear.c - the loops around the products of a linear layer.
 *
 * Forward goes over (tile of rows, group of out blocks) and holds the tiles of y while in blocks pass: weights stream
 * through, and a tile of x serves the group from the second-level cache. Backward goes over groups of in blocks and
 * holds their dx; a block of weights is turned once, in the first-level cache, for all rows of a stretch. Weight
 * gradients hold a group of dy while x passes. Without groups wide layers wait for the last-level cache.
 */
#include "kernels/linear.h"

#include <string.h>

#include "kernels/linear_parts.h"
#include "kernels/simd.h"

enum {
	CHUNK_LEVEL = 6, /* weight gradients: stretches of 64 rows, both operands in the first-level cache */
	/* backward: rows a turned block serves at once; dx of them stays in the second level */
	STRETCH_ROWS = 1024,
	GROUP_MOST = 4, /* blocks that are worked on together: 4 * 256 kB, and what passes by them */
	FEW_ROWS = 16,  /* up to here weights stream by once, at the speed of memory: in the order in which they lie */
	TURNED_OUTPUTS = 32 /* whose rows of weights stream by together */
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static ls_status make_products(ls_linear_products out, ls_gemm_shape shape, int highest)
{
	for (int level = 0; level <= highest; level++)
		for (int adds = 0; adds < 2; adds++) {
			shape.rows = 1 << level;
			shape.accumulate = adds;
			LS_TRY(ls_gemm_make(&out[level][adds], &shape));
		}
	return LS_OK;
}

static ls_status make_blocked(ls_linear_plan *p)
{
	const int in = p->in_panel, out = p->out_panel;
	LS_TRY(make_products(p->backward, (ls_gemm_shape){ .depth = out, .cols = in, .ldx = out, .ldw = in, .ldy = in },
			     LS_LINEAR_LEVELS - 1));
	return make_products(
		p->weights,
		(ls_gemm_shape){ .depth = in, .cols = out, .ldx = in, .ldw = out, .ldy = out, .transposed = 1 },
		CHUNK_LEVEL);
}

/* dx = dy . w as the weights lie, dw = dy^T . x; the last block of outputs may be narrow. */
static ls_status make_tied(ls_linear_plan *p)
{
	const int in = p->in_panel, out = p->out_panel, row = p->in_blocks * in;
	ls_gemm_shape data = { .depth = out, .cols = in, .ldx = out, .ldw = row, .ldy = in };
	ls_gemm_shape weights = { .depth = out, .cols = in, .ldx = out, .ldw = in, .ldy = row, .transposed = 1 };

	LS_TRY(make_products(p->backward, data, LS_LINEAR_LEVELS - 1));
	LS_TRY(make_products(p->weights, weights, CHUNK_LEVEL));
	data.depth = weights.depth = p->last_out;
	LS_TRY(make_products(p->last_backward, data, LS_LINEAR_LEVELS - 1));
	return make_products(p->last_weights, weights, CHUNK_LEVEL);
}

ls_status ls_linear_plan_make(ls_linear_plan *p, int in, int in_panel, int out, int out_panel, int tied)
{
	*p = (ls_linear_plan){ .in_blocks = (in + in_panel - 1) / in_panel,
			       .in_panel = in_panel,
			       .out_blocks = (out + out_panel - 1) / out_panel,
			       .out_panel = out_panel,
			       .tied = tied };
	p->last_out = out - (p->out_blocks - 1) * out_panel;
	LS_TRY(make_products(
		p->forward,
		(ls_gemm_shape){
			.depth = in_panel, .cols = out_panel, .ldx = in_panel, .ldw = out_panel, .ldy = out_panel },
		LS_LINEAR_LEVELS - 1));
	return tied ? make_tied(p) : make_blocked(p);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* One block of weights against `rows` rows, ldx and ldy apart. */
static void run_rows(const ls_gemm (*products)[2], int64_t rows, int adds, const float *x, const float *w, float *y)
{
	for (int level = LS_LINEAR_LEVELS - 1; level >= 0; level--) {
		const ls_gemm *product = &products[level][adds];
		for (; rows >> level; rows -= (int64_t)1 << level) {
			ls_gemm_run(product, x, w, y);
			x += (int64_t)product->shape.ldx << level;
			y += (int64_t)product->shape.ldy << level;
		}
	}
}

static size_t block_floats(const ls_linear_plan *p)
{
	return (size_t)p->in_panel * (size_t)p->out_panel;
}

size_t ls_linear_scratch_floats(int in_panel, int out_panel, int threads)
{
	return (size_t)in_panel * (size_t)out_panel * (size_t)threads; /* a turned block each */
}

/* Blocks that share what streams by: as many as keep it near, and fewer where there would be too few units for all. */
static int64_t group_of(int64_t blocks, int64_t others, ls_member member)
{
	int64_t group = GROUP_MOST;
	while (group > 1 && member.size > 1 && (blocks + group - 1) / group * others < 4 * (int64_t)member.size)
		group /= 2;
	return group;
}

int ls_linear_outputs_of(const ls_linear_plan *p, int64_t ob)
{
	return p->tied && ob == p->out_blocks - 1 ? p->last_out : p->out_panel;
}

int64_t ls_linear_block_place(const ls_linear_plan *p, int64_t ob, int64_t ib)
{
	if (p->tied)
		return ob * p->out_panel * p->in_blocks * p->in_panel + ib * p->in_panel;
	return (ob * p->in_blocks + ib) * (int64_t)block_floats(p);
}

/* Out of (rows, cols) with stride ld into (cols, out_ld); whole lines by vectors, the rest one by one. */
static void turn(const float *in, int rows, int cols, int ld, float *out, int out_ld)
{
	int whole = rows / 16 * 16;
	if (whole > 0)
		ls_simd_get()->transpose(in, whole, cols, ld, out, out_ld);
	for (int c = 0; c < cols && whole < out_ld; c++)
		for (int r = whole; r < out_ld; r++)
			out[(int64_t)c * out_ld + r] = r < rows ? in[(int64_t)r * ld + c] : 0;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

void ls_linear_finish(const ls_linear_plan *p, const ls_linear_epilogue *e, int64_t ob, int64_t count, float *tile,
		      float *y)
{
	const ls_simd *simd = ls_simd_get();
	if (e->bias || e->relu)
		simd->bias_act(tile, count, p->out_panel, e->bias ? e->bias + ob * p->out_panel : NULL, e->relu);
	if (e->kept && e->keep_slope)
		simd->gelu_slope(tile, count * p->out_panel, e->approximate, y, tile);
	else if (e->kept)
		simd->gelu(tile, count * p->out_panel, e->approximate, y);
}

/* The block of weights that comes after this one will be near when it is its turn. Where blocks follow each other in
 * memory, the processor sees that for itself. */
static void fetch(const float *block, size_t floats)
{
	for (size_t i = 0; i < floats; i += 16)
		__builtin_prefetch(block + i);
}

/* Out blocks [ob, ob + group) of a tile: a tile of x serves all of them while it is near. */
static void forward_tile(const ls_linear_plan *p, int64_t rows, int64_t first, int64_t ob, int64_t group,
			 const float *x, const float *weights, const ls_linear_epilogue *e, float *y)
{
	int64_t count = smaller(LS_LINEAR_TILE, rows - first), last = smaller(ob + group, p->out_blocks);
	float *into = e->kept ? e->kept : y;

	for (int64_t ib = 0; ib < p->in_blocks; ib++)
		for (int64_t o = ob; o < last; o++) {
			int64_t turn_of = o + 1 < last ? o + 1 : ob, next = o + 1 < last ? ib : ib + 1;
			if (next < p->in_blocks && rows > FEW_ROWS)
				fetch(weights + ls_linear_block_place(p, turn_of, next), block_floats(p));
			run_rows(p->forward, count, ib > 0, x + (ib * rows + first) * p->in_panel,
				 weights + ls_linear_block_place(p, o, ib), into + (o * rows + first) * p->out_panel);
		}
	for (int64_t o = ob; o < last; o++) {
		int64_t place = (o * rows + first) * p->out_panel;
		ls_linear_finish(p, e, o, count, into + place, y + place);
	}
}

/* Weights outermost: a block is turned once for all rows. */
static void forward_turned(const ls_linear_plan *p, int64_t rows, int64_t ob, const float *x, const float *weights,
			   float *tile, float *spare)
{
	for (int64_t ib = 0; ib < p->in_blocks; ib++) {
		turn(weights + ls_linear_block_place(p, ob, ib), ls_linear_outputs_of(p, ob), p->in_panel,
		     p->in_blocks * p->in_panel, spare, p->out_panel);
		run_rows(p->forward, rows, ib > 0, x + ib * rows * p->in_panel, spare, tile);
	}
}

/* The weights of a few outputs after those of others, whole rows of them: in the order in which they lie. */
static void forward_turning(const ls_linear_plan *p, int64_t rows, int64_t ob, const float *x, const float *weights,
			    float *tile)
{
	const int row = p->in_blocks * p->in_panel;
	ls_gemm_shape shape = {
		.rows = (int)rows, .depth = p->in_panel, .ldx = p->in_panel, .ldw = row, .ldy = p->out_panel
	};

	for (int out = 0; out < p->out_panel; out += shape.cols) {
		shape.cols = p->out_panel - out < TURNED_OUTPUTS ? p->out_panel - out : TURNED_OUTPUTS;
		for (int64_t ib = 0; ib < p->in_blocks; ib++) {
			shape.accumulate = ib > 0;
			ls_simd_get()->gemm_turned(&shape, x + ib * rows * p->in_panel,
						   weights + ls_linear_block_place(p, ob, ib) + (int64_t)out * row,
						   tile + out);
		}
	}
}

static void forward_tied(const ls_linear_plan *p, int64_t rows, int64_t ob, const float *x, const float *weights,
			 const ls_linear_epilogue *e, float *y, float *spare)
{
	int64_t place = ob * rows * p->out_panel;
	float *tile = e->kept ? e->kept + place : y + place;

	if (rows > 0 && rows <= LS_GEMM_TURNED_ROWS && ls_linear_outputs_of(p, ob) == p->out_panel)
		forward_turning(p, rows, ob, x, weights, tile);
	else
		forward_turned(p, rows, ob, x, weights, tile, spare);
	ls_linear_finish(p, e, ob, rows, tile, y + place);
}

void ls_linear_forward(const ls_linear_plan *p, int64_t rows, const float *x, const float *weights,
		       const ls_linear_epilogue *e, float *y, float *scratch, ls_member member)
{
	int64_t tiles = p->tied ? 1 : (rows + LS_LINEAR_TILE - 1) / LS_LINEAR_TILE, unit;
	int64_t group = p->tied || rows <= FEW_ROWS ? 1 : group_of(p->out_blocks, tiles, member),
		groups = (p->out_blocks + group - 1) / group;
	float *spare = scratch + (size_t)member.rank * block_floats(p);

	while ((unit = ls_team_next(member, tiles * groups)) >= 0) {
		int64_t ob = unit % groups * group;
		if (p->tied)
			forward_tied(p, rows, ob, x, weights, e, y, spare);
		else
			forward_tile(p, rows, unit / groups * LS_LINEAR_TILE, ob, group, x, weights, e, y);
	}
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Block (ob, ib) of the weights against rows [first, first + count): turned where they do not lie as they are needed.
 */
static void backward_block(const ls_linear_plan *p, int64_t rows, int64_t first, int64_t count, int64_t ob, int64_t ib,
			   const float *dy, const float *weights, int adds, float *dx, float *spare)
{
	const float *w = weights + ls_linear_block_place(p, ob, ib);
	int last = p->tied && ob == p->out_blocks - 1;

	if (!p->tied) {
		ls_simd_get()->transpose(w, p->in_panel, p->out_panel, p->out_panel, spare, p->in_panel);
		w = spare;
	}
	run_rows(last ? p->last_backward : p->backward, count, adds, dy + (ob * rows + first) * p->out_panel, w,
		 dx + (ib * rows + first) * p->in_panel);
}

void ls_linear_backward_data(const ls_linear_plan *p, int64_t rows, const float *dy, const float *weights,
			     int accumulate, float *dx, float *scratch, ls_member member)
{
	int64_t stretches = (rows + STRETCH_ROWS - 1) / STRETCH_ROWS, unit;
	int64_t group = group_of(p->in_blocks, stretches, member), groups = (p->in_blocks + group - 1) / group;
	float *spare = scratch + (size_t)member.rank * block_floats(p);

	while ((unit = ls_team_next(member, stretches * groups)) >= 0) {
		int64_t begin = unit % groups * group, end = smaller(begin + group, p->in_blocks);
		int64_t first = unit / groups * STRETCH_ROWS, count = smaller(STRETCH_ROWS, rows - first);
		for (int64_t ob = 0; ob < p->out_blocks; ob++)
			for (int64_t ib = begin; ib < end; ib++)
				backward_block(p, rows, first, count, ob, ib, dy, weights, accumulate || ob > 0, dx,
					       spare);
	}
}

/* Sum over rows in order, stretch by stretch. `a` is what is transposed. */
static void run_weights(const ls_gemm (*products)[2], int64_t rows, int adds, const float *a, const float *b, float *dw)
{
	for (int level = CHUNK_LEVEL; level >= 0; level--)
		for (; rows >> level; rows -= (int64_t)1 << level, adds = 1) {
			const ls_gemm *product = &products[level][adds];
			ls_gemm_run(product, a, b, dw);
			a += (int64_t)product->shape.ldx << level;
			b += (int64_t)product->shape.ldw << level;
		}
}

static void weights_block(const ls_linear_plan *p, int64_t rows, int64_t ob, int64_t ib, const float *x,
			  const float *dy, int accumulate, float *dweights)
{
	const float *in = x + ib * rows * p->in_panel, *out = dy + ob * rows * p->out_panel;
	float *dw = dweights + ls_linear_block_place(p, ob, ib);

	if (!p->tied)
		run_weights(p->weights, rows, accumulate, in, out, dw);
	else
		run_weights(ob == p->out_blocks - 1 ? p->last_weights : p->weights, rows, accumulate, out, in, dw);
}

void ls_linear_zero_weights(const ls_linear_plan *p, int accumulate, float *dweights, ls_member member)
{
	int64_t outputs = (int64_t)(p->out_blocks - 1) * p->out_panel + ls_linear_outputs_of(p, p->out_blocks - 1),
		begin, end;

	ls_team_range(member, outputs * p->in_blocks * p->in_panel, &begin, &end);
	if (!accumulate)
		memset(dweights + begin, 0, sizeof(float) * (size_t)(end - begin));
}

void ls_linear_backward_weights(const ls_linear_plan *p, int64_t rows, const float *x, const float *dy, int accumulate,
				float *dweights, ls_member member)
{
	int64_t unit;

	if (rows == 0) { /* nothing was asked for: the sum over no rows */
		ls_linear_zero_weights(p, accumulate, dweights, member);
		return;
	}
	int64_t group = group_of(p->out_blocks, p->in_blocks, member), groups = (p->out_blocks + group - 1) / group;
	while ((unit = ls_team_next(member, groups * p->in_blocks)) >= 0) {
		int64_t begin = unit / p->in_blocks * group, end = smaller(begin + group, p->out_blocks);
		for (int64_t ob = begin; ob < end; ob++)
			weights_block(p, rows, ob, unit % p->in_blocks, x, dy, accumulate, dweights);
	}
}
