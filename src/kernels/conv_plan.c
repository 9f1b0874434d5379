/*
 * conv_plan.c - decide, once, how a convolution walks: maps, tiles, products.
 */
#include "kernels/winograd_walk.h"

#include <assert.h>

#include "params/panel.h"

/* Rows that make a product long enough to run near peak, and short enough to stay in the first-level cache. */
#define SHORT_MICROBATCH 64
#define LONG_MICROBATCH 256
#define TILE_ROWS 128
#define WGRAD_ROWS 64

static int covers(int out, int in, int tap, int stride, int padding)
{
	for (int o = 0; o < out; o++) {
		int i = o * stride - padding + tap;
		if (i >= 0 && i < in)
			return 1;
	}
	return 0;
}

int ls_conv_slots(const ls_conv_geometry *g, int16_t *slot)
{
	int taps = g->kernel_h * g->kernel_w, reachable = 0, total = 0;

	for (int pass = 0; pass < 2; pass++) /* reachable taps, then the others */
		for (int t = 0; t < taps; t++) {
			int reached = covers(g->out_h, g->in_h, t / g->kernel_w, g->stride, g->padding) &&
				      covers(g->out_w, g->in_w, t % g->kernel_w, g->stride, g->padding);
			if (reached == (pass == 0))
				slot[t] = (int16_t)total++;
			reachable += reached && pass == 0;
		}
	return reachable;
}

static double axis_hits(int out, int in, int kernel, int stride, int padding)
{
	double hits = 0;
	for (int o = 0; o < out; o++)
		for (int k = 0; k < kernel; k++) {
			int i = o * stride - padding + k;
			hits += i >= 0 && i < in;
		}
	return hits;
}

double ls_conv_macs(const ls_conv_geometry *g, int count_padding)
{
	double channels = (double)g->in_c * g->out_c;
	if (count_padding)
		return channels * g->kernel_h * g->kernel_w * g->out_h * g->out_w;
	return channels * axis_hits(g->out_h, g->in_h, g->kernel_h, g->stride, g->padding) *
	       axis_hits(g->out_w, g->in_w, g->kernel_w, g->stride, g->padding);
}

int ls_conv_patch_floats(const ls_conv_geometry *g)
{
	int depth = g->in_c * g->kernel_h * g->kernel_w;
	return (depth + 15) / 16 * 16;
}

/* Forward: output o, tap k reads input o*stride - padding + k. */
static int forward_source(const ls_conv_geometry *g, int o, int k, int in)
{
	int i = o * g->stride - g->padding + k;
	return i >= 0 && i < in ? i : -1;
}

/* Backward: input i received through tap k from output (i + padding - k) / stride, where that is whole. */
static int backward_source(const ls_conv_geometry *g, int i, int k, int out)
{
	int o = i + g->padding - k;
	if (o < 0 || o % g->stride != 0 || o / g->stride >= out)
		return -1;
	return o / g->stride;
}

typedef int (*source_of)(const ls_conv_geometry *g, int position, int tap, int limit);

static int32_t *make_map(ls_arena *arena, const ls_conv_geometry *g, source_of source, int positions, int taps,
			 int limit)
{
	int32_t *map = ls_arena_alloc(arena, sizeof(*map) * (size_t)positions * (size_t)taps);
	if (!map)
		return NULL;
	for (int p = 0; p < positions; p++)
		for (int k = 0; k < taps; k++)
			map[p * taps + k] = source(g, p, k, limit);
	return map;
}

/* A set of products: one per run length, or a whole block and its rest; each fresh and accumulating. */
static ls_status make_products(ls_gemm (**out)[2], ls_arena *arena, ls_gemm_shape shape, int64_t n, int run,
			       int64_t block)
{
	int count = run > 1 ? run : 2;
	ls_gemm(*set)[2] = ls_arena_alloc(arena, sizeof(*set) * (size_t)count);

	if (!set)
		return LS_EMEMORY;
	for (int i = 0; i < count; i++) {
		int64_t rows = run > 1 ? n * (i + 1) : (i == 0 ? block : n % block);
		for (int a = 0; a < 2 && rows > 0; a++) {
			shape.rows = (int)rows;
			shape.accumulate = a;
			LS_TRY(ls_gemm_make(&set[i][a], &shape));
		}
	}
	*out = set;
	return LS_OK;
}

/* Positions a product covers: several when the micro-batch is short and neighbours are contiguous (stride 1). */
static int choose_run(const ls_conv_geometry *g, int64_t n, int width, int rows)
{
	int64_t run = n >= SHORT_MICROBATCH ? 1 : (rows + n - 1) / n;
	if (g->stride != 1 || run < 1)
		return 1;
	return run < width ? (int)run : width;
}

static ls_status make_walk(ls_conv_walk *walk, ls_arena *arena, const ls_conv_geometry *g, int64_t n)
{
	ls_gemm_shape shape = { .depth = walk->source_panel,
				.cols = walk->panel,
				.ldx = walk->source_stride,
				.ldw = walk->panel,
				.ldy = walk->panel };
	int64_t runs, blocks;

	if (!walk->map_y || !walk->map_x)
		return LS_EMEMORY;
	walk->run = choose_run(g, n, walk->w, TILE_ROWS);
	walk->block = walk->run > 1 || n <= LONG_MICROBATCH ? n : TILE_ROWS;
	runs = (walk->w + walk->run - 1) / walk->run;
	blocks = (n + walk->block - 1) / walk->block;
	walk->tiles = walk->h * runs * blocks;
	return make_products(&walk->products, arena, shape, n, walk->run, walk->block);
}

/* One position per tile is the finest cut of the map; make_walk() cuts samples only above LONG_MICROBATCH, Winograd's
 * above the rows of a product. */
int64_t ls_conv_tiles_most(const ls_conv_geometry *g, ls_conv_algorithm algorithm, int64_t n)
{
	int64_t blocks = n <= LONG_MICROBATCH ? 1 : (n + TILE_ROWS - 1) / TILE_ROWS;

	if (ls_conv_is_winograd(g, algorithm))
		blocks = (n + LS_WINOGRAD_ROWS - 1) / LS_WINOGRAD_ROWS;
	return (int64_t)g->out_h * g->out_w * blocks;
}

static ls_status make_forward(ls_conv_plan *plan, ls_arena *arena)
{
	const ls_conv_geometry *g = &plan->geometry;
	ls_conv_walk *f = &plan->forward;

	f->h = g->out_h;
	f->w = g->out_w;
	f->source_h = g->in_h;
	f->source_w = g->in_w;
	f->kernel_h = g->kernel_h;
	f->kernel_w = g->kernel_w;
	f->map_y = make_map(arena, g, forward_source, g->out_h, g->kernel_h, g->in_h);
	f->map_x = make_map(arena, g, forward_source, g->out_w, g->kernel_w, g->in_w);
	LS_TRY(make_walk(f, arena, g, plan->n));
	assert(f->tiles <= ls_conv_tiles_most(g, LS_CONV_DIRECT, plan->n));
	return LS_OK;
}

static ls_status make_backward(ls_conv_plan *plan, ls_arena *arena)
{
	const ls_conv_geometry *g = &plan->geometry;
	const ls_conv_walk *f = &plan->forward;
	ls_conv_walk *b = &plan->backward;

	*b = (ls_conv_walk){ .h = g->in_h,
			     .w = g->in_w,
			     .source_h = g->out_h,
			     .source_w = g->out_w,
			     .blocks = f->source_blocks,
			     .panel = f->source_panel,
			     .source_blocks = f->blocks,
			     .source_panel = f->panel,
			     .source_stride = f->panel,
			     .kernel_h = g->kernel_h,
			     .kernel_w = g->kernel_w };
	b->map_y = make_map(arena, g, backward_source, g->in_h, g->kernel_h, g->out_h);
	b->map_x = make_map(arena, g, backward_source, g->in_w, g->kernel_w, g->out_w);
	return make_walk(b, arena, g, plan->n);
}

#define UNITS_PER_THREAD 8
#define PARTS_MOST 4

/* A layer with few blocks and taps has too few units to share; then cut the rows of each block, but not into more parts
 * than there are threads: every part reads dy again. */
static void choose_parts(ls_conv_plan *plan, int threads)
{
	const ls_conv_walk *f = &plan->forward;
	int64_t units = (int64_t)plan->reachable_taps * f->blocks * f->source_blocks;
	int parts = 1;

	while (units * parts < UNITS_PER_THREAD * threads && parts < threads && parts < PARTS_MOST)
		parts *= 2;
	plan->wgrad_depth = (f->source_panel + parts - 1) / parts;
	plan->wgrad_parts = (f->source_panel + plan->wgrad_depth - 1) / plan->wgrad_depth;
}

static ls_status make_wgrad(ls_conv_plan *plan, ls_arena *arena, int threads)
{
	const ls_conv_walk *f = &plan->forward;
	ls_gemm_shape shape = { .depth = f->source_panel,
				.cols = f->panel,
				.ldx = f->source_stride,
				.ldw = f->panel,
				.ldy = f->panel,
				.transposed = 1 };

	plan->wgrad_run = choose_run(&plan->geometry, plan->n, f->w, WGRAD_ROWS);
	plan->wgrad_block = plan->wgrad_run > 1 || plan->n < WGRAD_ROWS ? plan->n : WGRAD_ROWS;
	choose_parts(plan, threads);
	for (int last = 0; last < 2; last++) {
		shape.depth = last ? f->source_panel - (plan->wgrad_parts - 1) * plan->wgrad_depth : plan->wgrad_depth;
		LS_TRY(make_products(&plan->wgrad[last], arena, shape, plan->n, plan->wgrad_run, plan->wgrad_block));
	}
	return LS_OK;
}

/* Patches make any layer 1x1; a 1x1 layer of stride 1 sees its map as one long row of positions. */
static ls_conv_geometry as_run(const ls_conv_geometry *g)
{
	ls_conv_geometry run = *g;
	int pointwise = g->kernel_h == 1 && g->kernel_w == 1 && g->stride == 1 && g->padding == 0;

	if (!g->gathered && !pointwise)
		return run;
	run.in_h = run.out_h = 1;
	run.in_w = run.out_w = g->out_h * g->out_w;
	run.kernel_h = run.kernel_w = run.stride = 1;
	run.padding = 0;
	return run;
}

ls_status ls_conv_plan_make(ls_conv_plan *out, ls_arena *arena, const ls_conv_geometry *geometry,
			    ls_conv_algorithm algorithm, int64_t n, const ls_weight_layout *weights, int threads)
{
	ls_conv_plan plan = { .geometry = as_run(geometry), .n = n };
	ls_conv_walk *f = &plan.forward;

	plan.kernel_taps = plan.geometry.kernel_h * plan.geometry.kernel_w;
	plan.reachable_taps = geometry->gathered ? 1 : weights->reachable_taps;
	plan.slot = geometry->gathered ? NULL : weights->slot;
	f->panel = weights->out_panel;
	f->blocks = (weights->out + weights->out_panel - 1) / weights->out_panel;
	f->source_panel = weights->in_panel;
	f->source_blocks = geometry->gathered ? 1 : (weights->in + weights->in_panel - 1) / weights->in_panel;
	f->source_stride = geometry->gathered ? ls_conv_patch_floats(geometry) : weights->in_panel;
	if (ls_conv_is_winograd(geometry, algorithm)) {
		LS_TRY(ls_winograd_plan_make(&plan, arena));
		*out = plan;
		return LS_OK;
	}
	LS_TRY(make_forward(&plan, arena));
	if (!geometry->gathered)
		LS_TRY(make_backward(&plan, arena));
	LS_TRY(make_wgrad(&plan, arena, threads));
	*out = plan;
	return LS_OK;
}
