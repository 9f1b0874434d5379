/*
 * conv.c - the walk itself: tiles of output positions, and for each the products of the taps that meet the image.
 */
#include "kernels/conv.h"

#include <string.h>

#include "kernels/simd.h"

static int slot_of(const ls_conv_plan *plan, int tap)
{
	return plan->slot != NULL ? plan->slot[tap] : tap;
}

/* A tile: positions [x0, x1) of row y, samples [first, first + count). */
typedef struct tile {
	int y, x0, x1;
	int64_t first, count;
} tile;

static tile tile_at(const ls_conv_walk *walk, int64_t n, int64_t index)
{
	int64_t blocks = (n + walk->block - 1) / walk->block;
	int64_t runs = (walk->w + walk->run - 1) / walk->run;
	int64_t run = index / blocks % runs;
	tile t = { .y = (int)(index / blocks / runs), .x0 = (int)run * walk->run, .first = index % blocks * walk->block };

	t.x1 = t.x0 + walk->run < walk->w ? t.x0 + walk->run : walk->w;
	t.count = n - t.first < walk->block ? n - t.first : walk->block;
	return t;
}

int64_t ls_conv_tile_rows(const ls_conv_plan *plan, int64_t index)
{
	tile t = tile_at(&plan->forward, plan->n, index);
	return (t.x1 - t.x0) * t.count;
}

/* The product for `positions` neighbours, or for a whole or partial block of samples. */
static const ls_gemm *product_of(ls_gemm (*products)[2], int run, int64_t block, int positions, int64_t count, int accumulate)
{
	int index = run > 1 ? positions - 1 : count < block;
	return &products[index][accumulate];
}

typedef struct walk_job {
	const ls_conv_plan *plan;
	const ls_conv_walk *walk;
	const float *source, *weights;
	float *out;
	int accumulate;
} walk_job;

/* One tap on positions [a, b) of a tile: all source blocks. `fresh` means the first product overwrites. */
static void tap_products(const walk_job *job, const tile *t, int64_t block, int tap, int sy, int a, int b, int fresh,
                         float *out)
{
	const ls_conv_walk *w = job->walk;
	int64_t n = job->plan->n;
	int sx = w->map_x[a * w->kernel_w + tap % w->kernel_w];
	int64_t plane = (int64_t)w->source_h * w->source_w * n * w->source_stride;
	const float *source = job->source + (((int64_t)sy * w->source_w + sx) * n + t->first) * w->source_stride;
	int64_t weight_block = (int64_t)w->source_panel * w->panel;
	const float *weights = job->weights +
	                       ((int64_t)slot_of(job->plan, tap) * w->blocks + block) * w->source_blocks * weight_block;
	const ls_gemm *first = product_of(w->products, w->run, w->block, b - a, t->count, !fresh);
	const ls_gemm *rest = product_of(w->products, w->run, w->block, b - a, t->count, 1);

	ls_gemm_run(first, source, weights, out);
	for (int s = 1; s < w->source_blocks; s++)
		ls_gemm_run(rest, source + s * plane, weights + s * weight_block, out);
}

/* Positions of the tile that tap column `k` reaches, as [*a, *b); contiguous in the source because stride is 1 or run is 1. */
static int reach(const ls_conv_walk *w, const tile *t, int k, int *a, int *b)
{
	int from = t->x0, to = t->x1;
	while (from < to && w->map_x[from * w->kernel_w + k] < 0)
		from++;
	while (to > from && w->map_x[(to - 1) * w->kernel_w + k] < 0)
		to--;
	*a = from;
	*b = to;
	return from < to;
}

/* Returns the tile's first row in `out`. */
static float *walk_tile(const walk_job *job, int64_t block, const tile *t)
{
	const ls_conv_walk *w = job->walk;
	int64_t n = job->plan->n, row = n * w->panel;
	float *out = job->out + ((block * w->h + t->y) * w->w + t->x0) * row + t->first * w->panel;
	size_t bytes = sizeof(float) * (size_t)((t->x1 - t->x0) * t->count * w->panel);
	int started = job->accumulate, a, b;

	for (int r = 0; r < w->kernel_h; r++) {
		int sy = w->map_y[t->y * w->kernel_h + r];
		for (int s = 0; sy >= 0 && s < w->kernel_w; s++) {
			if (!reach(w, t, s, &a, &b))
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

static void finish_tile(const ls_conv_walk *w, const ls_conv_epilogue *e, const ls_simd *simd, int64_t block,
                        int64_t index, int64_t rows, float *out)
{
	if (e->bias != NULL || e->relu)
		simd->bias_act(out, rows, w->panel, e->bias != NULL ? e->bias + block * w->panel : NULL, e->relu);
	if (e->mean != NULL) {
		int64_t place = (block * w->tiles + index) * w->panel;
		simd->moments(out, rows, w->panel, e->mean + place, e->m2 + place);
	}
}

void ls_conv_forward(const ls_conv_plan *plan, const float *x, const float *weights, const ls_conv_epilogue *epilogue,
                     float *y, ls_member member)
{
	const ls_conv_walk *w = &plan->forward;
	walk_job job = { .plan = plan, .walk = w, .source = x, .weights = weights, .out = y };
	const ls_simd *simd = ls_simd_get();
	int64_t units = w->tiles * w->blocks, unit;

	while ((unit = ls_team_next(member, units)) >= 0) {
		int64_t block = unit / w->tiles, index = unit % w->tiles;
		tile t = tile_at(w, plan->n, index);
		float *out = walk_tile(&job, block, &t);
		finish_tile(w, epilogue, simd, block, index, (t.x1 - t.x0) * t.count, out);
	}
}

void ls_conv_backward_data(const ls_conv_plan *plan, const float *dy, const float *turned, int accumulate, float *dx,
                           ls_member member)
{
	const ls_conv_walk *w = &plan->backward;
	walk_job job = { .plan = plan, .walk = w, .source = dy, .weights = turned, .out = dx, .accumulate = accumulate };
	int64_t units = w->tiles * w->blocks, unit;

	while ((unit = ls_team_next(member, units)) >= 0) {
		tile t = tile_at(w, plan->n, unit % w->tiles);
		walk_tile(&job, unit / w->tiles, &t);
	}
}

void ls_conv_turn_weights(const ls_conv_plan *plan, const float *weights, float *turned, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	const ls_simd *simd = ls_simd_get();
	int64_t size = (int64_t)f->panel * f->source_panel;
	int64_t units = (int64_t)plan->live_taps * f->blocks, unit;

	while ((unit = ls_team_next(member, units)) >= 0) {
		int64_t slot = unit / f->blocks, block = unit % f->blocks;
		for (int64_t s = 0; s < f->source_blocks; s++) {
			const float *in = weights + (unit * f->source_blocks + s) * size;
			float *out = turned + ((slot * f->source_blocks + s) * f->blocks + block) * size;
			simd->transpose(in, f->source_panel, f->panel, f->panel, out, f->source_panel);
		}
	}
}

/* Weight gradients: a unit is one (out block, in block) pair and a group of taps. */
typedef struct wgrad_job {
	const ls_conv_plan *plan;
	const float *x, *dy;
	float *dweights;
	int accumulate;
} wgrad_job;

/* Tap `tap` at output positions [a, b) of row y: one product for each block of samples. */
static void wgrad_products(const wgrad_job *job, int64_t block, int64_t source, int tap, int y, int sy, int a, int b,
                           int *started)
{
	const ls_conv_plan *plan = job->plan;
	const ls_conv_walk *f = &plan->forward;
	int64_t n = plan->n, step = plan->wgrad_block;
	int sx = f->map_x[a * f->kernel_w + tap % f->kernel_w];
	const float *x = job->x + ((source * f->source_h + sy) * f->source_w + sx) * n * f->source_stride;
	const float *dy = job->dy + ((block * f->h + y) * f->w + a) * n * f->panel;
	float *out = job->dweights + (((int64_t)slot_of(plan, tap) * f->blocks + block) * f->source_blocks + source) *
	                                     f->source_panel * f->panel;

	for (int64_t i = 0; i < n; i += step) {
		int64_t count = n - i < step ? n - i : step;
		const ls_gemm *product = product_of(plan->wgrad, plan->wgrad_run, step, b - a, count, *started);
		ls_gemm_run(product, x + i * f->source_stride, dy + i * f->panel, out);
		*started = 1;
	}
}

/* Row y of the output against taps [first, last): positions outermost, so both operands stay in cache over the taps. */
static void wgrad_row(const wgrad_job *job, int64_t block, int64_t source, int y, int first, int last, int *started)
{
	const ls_conv_walk *f = &job->plan->forward;
	int run = job->plan->wgrad_run, a, b;

	for (int x0 = 0; x0 < f->w; x0 += run) {
		tile t = { .x0 = x0, .x1 = x0 + run < f->w ? x0 + run : f->w };
		for (int tap = first; tap < last; tap++) {
			int sy = f->map_y[y * f->kernel_h + tap / f->kernel_w];
			if (sy >= 0 && reach(f, &t, tap % f->kernel_w, &a, &b))
				wgrad_products(job, block, source, tap, y, sy, a, b, &started[tap - first]);
		}
	}
}

#define TAP_GROUP_MAX 64

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

/* Enough units to keep every thread busy to the end, but no more than needed: a group shares its operands. */
static int tap_group(const ls_conv_plan *plan, int64_t pairs, int threads)
{
	int64_t groups = threads == 1 ? 1 : (6 * threads + pairs - 1) / pairs;
	int64_t size = (plan->kernel_taps + groups - 1) / groups;
	return min_int((int)size, TAP_GROUP_MAX);
}

void ls_conv_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, int accumulate, float *dweights,
                              ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	wgrad_job job = { .plan = plan, .x = x, .dy = dy, .dweights = dweights, .accumulate = accumulate };
	int64_t pairs = (int64_t)f->blocks * f->source_blocks;
	int group = tap_group(plan, pairs, member.size);
	int64_t groups = (plan->kernel_taps + group - 1) / group, unit;

	while ((unit = ls_team_next(member, pairs * groups)) >= 0) {
		int64_t pair = unit / groups;
		int first = (int)(unit % groups) * group, last = min_int(first + group, plan->kernel_taps);
		int started[TAP_GROUP_MAX];
		for (int i = 0; i < group; i++)
			started[i] = accumulate;
		for (int y = 0; y < f->h; y++)
			wgrad_row(&job, pair / f->source_blocks, pair % f->source_blocks, y, first, last, started);
	}
}

/* One patch: depth index = tap * channels + channel, zeros where the tap is outside. */
static void gather_patch(const ls_conv_geometry *g, const float *image, int oy, int ox, float *patch)
{
	for (int r = 0; r < g->kernel_h; r++) {
		int iy = oy * g->stride - g->padding + r;
		for (int s = 0; s < g->kernel_w; s++) {
			int ix = ox * g->stride - g->padding + s;
			int inside = iy >= 0 && iy < g->in_h && ix >= 0 && ix < g->in_w;
			for (int c = 0; c < g->in_c; c++)
				*patch++ = inside ? image[(c * g->in_h + iy) * g->in_w + ix] : 0;
		}
	}
}

/* The same for one channel: whole filter rows at a time. Columns [s0, s1) of the filter are inside; there may be none. */
static void gather_patch_grey(const ls_conv_geometry *g, const float *image, int oy, int ox, float *patch)
{
	int x0 = ox * g->stride - g->padding;
	int s0 = min_int(x0 < 0 ? -x0 : 0, g->kernel_w), right = min_int(g->in_w - x0, g->kernel_w);

	for (int r = 0; r < g->kernel_h; r++, patch += g->kernel_w) {
		int iy = oy * g->stride - g->padding + r;
		int s1 = iy >= 0 && iy < g->in_h && right > s0 ? right : s0;
		for (int s = 0; s < s0; s++)
			patch[s] = 0;
		for (int s = s0; s < s1; s++)
			patch[s] = image[iy * g->in_w + x0 + s];
		for (int s = s1; s < g->kernel_w; s++)
			patch[s] = 0;
	}
}

void ls_conv_gather(const ls_conv_geometry *g, int64_t n, const float *images, float *patches, ls_member member)
{
	int64_t image = (int64_t)g->in_c * g->in_h * g->in_w, row = ls_conv_patch_floats(g), unit;

	while ((unit = ls_team_next(member, (int64_t)g->out_h * g->out_w)) >= 0) {
		int oy = (int)(unit / g->out_w), ox = (int)(unit % g->out_w);
		float *patch = patches + unit * n * row;
		for (int64_t i = 0; i < n; i++, patch += row)
			(g->in_c == 1 ? gather_patch_grey : gather_patch)(g, images + i * image, oy, ox, patch);
	}
}
