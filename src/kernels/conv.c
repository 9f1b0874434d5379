/*
 * conv.c - the walk itself: tiles of output positions, and for each the products of the taps that fall inside the
 * image.
 */
#include "kernels/conv_walk.h"

#include <string.h>

#include "kernels/simd.h"

#define MAP_POSITIONS 16
#define MAP_ROWS 1024 /* of all positions together: their tiles stay in the second-level cache */

ls_conv_tile ls_conv_tile_at(const ls_conv_walk *walk, int64_t n, int64_t index)
{
	int64_t blocks = (n + walk->block - 1) / walk->block;
	int64_t runs = (walk->w + walk->run - 1) / walk->run;
	int64_t run = index / blocks % runs;
	ls_conv_tile t = { .y = (int)(index / blocks / runs),
			   .x0 = (int)run * walk->run,
			   .first = index % blocks * walk->block };

	t.x1 = t.x0 + walk->run < walk->w ? t.x0 + walk->run : walk->w;
	t.count = n - t.first < walk->block ? n - t.first : walk->block;
	return t;
}

int64_t ls_conv_tile_rows(const ls_conv_plan *plan, int64_t index)
{
	ls_conv_tile t = ls_conv_tile_at(&plan->forward, plan->n, index);
	return (t.x1 - t.x0) * t.count;
}

typedef struct walk_job {
	const ls_conv_plan *plan;
	const ls_conv_walk *walk;
	const float *source, *weights;
	float *out;
	int accumulate;
	float *spare; /* backward over a map: room for one turned block */
} walk_job;

/* One tap on positions [a, b) of a tile: all source blocks. `fresh` means the first product overwrites. */
static void tap_products(const walk_job *job, const ls_conv_tile *t, int64_t block, int tap, int sy, int a, int b,
			 int fresh, float *out)
{
	const ls_conv_walk *w = job->walk;
	int64_t n = job->plan->n;
	int sx = w->map_x[a * w->kernel_w + tap % w->kernel_w];
	int64_t plane = (int64_t)w->source_h * w->source_w * n * w->source_stride;
	const float *source = job->source + (((int64_t)sy * w->source_w + sx) * n + t->first) * w->source_stride;
	int64_t weight_block = (int64_t)w->source_panel * w->panel;
	const float *weights = job->weights + ((int64_t)ls_conv_slot_of(job->plan, tap) * w->blocks + block) *
						      w->source_blocks * weight_block;
	const ls_gemm *first = ls_conv_product(w->products, w->run, w->block, b - a, t->count, !fresh);
	const ls_gemm *rest = ls_conv_product(w->products, w->run, w->block, b - a, t->count, 1);

	ls_gemm_run(first, source, weights, out);
	for (int s = 1; s < w->source_blocks; s++)
		ls_gemm_run(rest, source + s * plane, weights + s * weight_block, out);
}

static float *tile_place(const walk_job *job, int64_t block, const ls_conv_tile *t)
{
	const ls_conv_walk *w = job->walk;
	return job->out + (((block * w->h + t->y) * w->w + t->x0) * job->plan->n + t->first) * w->panel;
}

/* Returns the tile's first row in `out`. */
static float *walk_tile(const walk_job *job, int64_t block, const ls_conv_tile *t)
{
	const ls_conv_walk *w = job->walk;
	int64_t row = job->plan->n * w->panel;
	float *out = tile_place(job, block, t);
	size_t bytes = sizeof(float) * (size_t)((t->x1 - t->x0) * t->count * w->panel);
	int started = job->accumulate, a, b;

	for (int r = 0; r < w->kernel_h; r++) {
		int sy = w->map_y[t->y * w->kernel_h + r];
		for (int s = 0; sy >= 0 && s < w->kernel_w; s++) {
			if (!ls_conv_reach(w, t, s, &a, &b))
				continue;
			int whole = a == t->x0 && b == t->x1;
			if (!started && !whole)
				memset(out, 0, bytes);
			tap_products(job, t, block, r * w->kernel_w + s, sy, a, b, !started && whole,
				     out + (a - t->x0) * row);
			started = 1;
		}
	}
	if (!started)
		memset(out, 0, bytes);
	return out;
}

/*
 * The other order, for backward over maps of a few positions: weights outermost. A block is transposed once, and serves
 * every position while it is in the first-level cache, instead of being written out transposed and read again. An
 * element adds the same terms in the same order either way. (Forward transposes nothing, and is as fast in both
 * orders.)
 */
static int walks_map(const ls_conv_walk *w, int64_t n, int threads)
{
	int64_t positions = (int64_t)w->h * w->w;
	return w->run == 1 && w->block >= n && positions <= MAP_POSITIONS && positions * n <= MAP_ROWS &&
	       w->blocks >= 2 * threads;
}

/* The weights of (tap, source block `s`, destination block), transposed, in this thread's spare block. */
static void turn_block(const walk_job *job, int tap, int64_t block, int64_t s)
{
	const ls_conv_walk *w = job->walk;
	int64_t slot = ls_conv_slot_of(job->plan, tap), size = (int64_t)w->source_panel * w->panel;

	ls_simd_get()->transpose(job->weights + ((slot * w->source_blocks + s) * w->blocks + block) * size, w->panel,
				 w->source_panel, w->source_panel, job->spare, w->panel);
}

/* One block of weights against every position it reaches. */
static void map_products(const walk_job *job, int64_t block, int tap, int64_t s, char *started)
{
	const ls_conv_walk *w = job->walk;
	int64_t n = job->plan->n, row = n * w->source_stride;
	const float *source = job->source + s * w->source_h * w->source_w * row;
	int turned = 0;
	float *out = job->out + block * w->h * w->w * n * w->panel;

	for (int p = 0; p < w->h * w->w; p++) {
		int sy = w->map_y[p / w->w * w->kernel_h + tap / w->kernel_w];
		int sx = w->map_x[p % w->w * w->kernel_w + tap % w->kernel_w];
		if (sy < 0 || sx < 0)
			continue;
		if (!turned)
			turn_block(job, tap, block, s);
		ls_gemm_run(&w->products[0][(int)started[p]], source + ((int64_t)sy * w->source_w + sx) * row,
			    job->spare, out + p * n * w->panel);
		started[p] = 1;
		turned = 1;
	}
}

static void walk_map(const walk_job *job, int64_t block)
{
	const ls_conv_walk *w = job->walk;
	int64_t tile = job->plan->n * w->panel;
	char started[MAP_POSITIONS];

	memset(started, job->accumulate, sizeof(started));
	for (int tap = 0; tap < w->kernel_h * w->kernel_w; tap++)
		for (int64_t s = 0; s < w->source_blocks; s++)
			map_products(job, block, tap, s, started);
	for (int p = 0; p < w->h * w->w; p++)
		if (!started[p])
			memset(job->out + (block * w->h * w->w + p) * tile, 0, sizeof(float) * (size_t)tile);
}

void ls_conv_finish_tile(const ls_conv_plan *plan, const ls_conv_epilogue *e, int64_t block, int64_t index,
			 int64_t rows, float *out)
{
	const ls_conv_walk *w = &plan->forward;
	const ls_simd *simd = ls_simd_get();

	if (e->bias || e->relu)
		simd->bias_act(out, rows, w->panel, e->bias ? e->bias + block * w->panel : NULL, e->relu);
	if (e->mean) {
		int64_t place = (block * w->tiles + index) * w->panel;
		simd->moments(out, rows, w->panel, e->mean + place, e->m2 + place);
	}
}

void ls_conv_forward(const ls_conv_plan *plan, const float *x, const float *weights, const ls_conv_epilogue *epilogue,
		     float *y, ls_member member)
{
	const ls_conv_walk *w = &plan->forward;
	walk_job job = { .plan = plan, .walk = w, .source = x, .weights = weights, .out = y };
	int64_t units = w->tiles * w->blocks, unit;

	while ((unit = ls_team_next(member, units)) >= 0) {
		int64_t block = unit / w->tiles, index = unit % w->tiles;
		ls_conv_tile t = ls_conv_tile_at(w, plan->n, index);
		float *out = walk_tile(&job, block, &t);
		ls_conv_finish_tile(plan, epilogue, block, index, (t.x1 - t.x0) * t.count, out);
	}
}

/* All blocks transposed at once: (slot, in block, out block, out_panel, in_panel). Reachable slots only. */
static void turn_weights(const ls_conv_plan *plan, const float *weights, float *turned, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	const ls_simd *simd = ls_simd_get();
	int64_t size = (int64_t)f->panel * f->source_panel;
	int64_t units = (int64_t)plan->reachable_taps * f->blocks, unit;

	while ((unit = ls_team_next(member, units)) >= 0) {
		int64_t slot = unit / f->blocks, block = unit % f->blocks;
		for (int64_t s = 0; s < f->source_blocks; s++) {
			const float *in = weights + (unit * f->source_blocks + s) * size;
			float *out = turned + ((slot * f->source_blocks + s) * f->blocks + block) * size;
			simd->transpose(in, f->source_panel, f->panel, f->panel, out, f->source_panel);
		}
	}
	ls_team_barrier(member);
}

/* A map walk needs one block of scratch per thread; there are at least twice as many blocks, so the scratch suffices.
 */
static void backward_map(walk_job *job, float *scratch, ls_member member)
{
	const ls_conv_walk *w = job->walk;
	int64_t unit;

	job->spare = scratch + (int64_t)member.rank * w->panel * w->source_panel;
	while ((unit = ls_team_next(member, w->blocks)) >= 0)
		walk_map(job, unit);
}

void ls_conv_backward_data(const ls_conv_plan *plan, const float *dy, const float *weights, float *scratch,
			   int accumulate, float *dx, ls_member member)
{
	const ls_conv_walk *w = &plan->backward;
	walk_job job = {
		.plan = plan, .walk = w, .source = dy, .weights = weights, .out = dx, .accumulate = accumulate
	};
	int64_t units = w->tiles * w->blocks, unit;

	if (walks_map(w, plan->n, member.size)) {
		backward_map(&job, scratch, member);
		return;
	}
	turn_weights(plan, weights, scratch, member);
	job.weights = scratch;
	while ((unit = ls_team_next(member, units)) >= 0) {
		ls_conv_tile t = ls_conv_tile_at(w, plan->n, unit % w->tiles);
		walk_tile(&job, unit / w->tiles, &t);
	}
}
