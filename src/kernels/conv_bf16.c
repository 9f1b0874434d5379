/*
 * conv_bf16.c - convolution in bf16: rounding of operands, forward, and the gradient of the input.
 *
 * The walk is that of conv.c: a tile of output positions at a time. Here positions of a tile that the same taps reach
 * are one product of several parts, a part being one tap and one block of source channels, so a sum stays in registers
 * over TOGETHER parts instead of going through memory between any two.
 */
#include "kernels/conv_bf16.h"

#include <string.h>

#include "kernels/conv_bf16_parts.h"
#include "kernels/simd.h"

enum {
	TOGETHER = 8,             /* parts summed in registers: 64 KB of weights */
	WEIGHT_WORDS_NEAR = 65536 /* weights that stay in the second-level cache: then all blocks of a tile in turn */
};

/* ---- scratch ---- */

static size_t block_words(int source_panel, int panel)
{
	return (size_t)(source_panel + 1) / 2 * (size_t)panel;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

size_t ls_conv_bf16_scratch_floats(const ls_conv_geometry *g, int64_t n, const ls_weight_layout *w, int threads)
{
	const int64_t out = (int64_t)g->out_h * g->out_w, in = g->gathered ? out : (int64_t)g->in_h * g->in_w;
	const int in_blocks = g->gathered ? 1 : (w->in + w->in_panel - 1) / w->in_panel;
	const int out_blocks = (w->out + w->out_panel - 1) / w->out_panel;
	const int in_row = g->gathered ? ls_conv_patch_floats(g) : w->in_panel;
	const size_t x = ls_conv_bf16_words(in_blocks, in, n, in_row);
	const size_t dy = ls_conv_bf16_words(out_blocks, out, n, w->out_panel);
	const size_t block = larger(block_words(w->in_panel, w->out_panel), block_words(w->out_panel, w->in_panel));
	const size_t taps = g->gathered ? 1 : (size_t)w->reachable_taps;
	const size_t packed = (taps * (size_t)in_blocks * (size_t)out_blocks + (size_t)threads) * block;

	return larger(larger(x, dy) + packed, x + dy);
}

/* ---- rounding ---- */

/* Some tap reads source position p: all of them are read unless the filter is smaller than its stride. */
static int is_read(const ls_conv_geometry *g, int width, int64_t p)
{
	int y = (int)(p / width) + g->padding, x = (int)(p % width) + g->padding;
	return y % g->stride < g->kernel_h && x % g->stride < g->kernel_w;
}

static int reads_all(const ls_conv_geometry *g)
{
	return g->kernel_h >= g->stride && g->kernel_w >= g->stride;
}

/* Segments of positions, transposed. A pair has samples of one position, so an odd micro-batch
 * goes position by position. */
static void round_turned(const ls_bf16_kernels *kernels, const ls_conv_bf16_rows *s, const float *x, uint32_t *out,
			 ls_member member)
{
	const int64_t segments = (s->w + s->segment - 1) / s->segment, half = (s->n + 1) / 2;
	int64_t begin, end;

	ls_team_range(member, (int64_t)s->blocks * s->h * segments, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		const int64_t first = i % segments * s->segment, p = i / segments * s->w + first;
		const int count = ls_min_int(s->segment, s->w - (int)first), together = s->n % 2 ? 1 : count;
		if (s->only_read && !is_read(s->only_read, s->w, p % ((int64_t)s->h * s->w)))
			continue;
		for (int k = 0; k < count; k += together)
			kernels->turned(x + (p + k) * s->n * s->row, together * s->n, s->row, s->row,
					out + p * half * s->row + k * half, count * half);
	}
}

void ls_conv_bf16_round(const ls_bf16_kernels *kernels, const ls_conv_bf16_rows *s, const float *x, uint32_t *out,
			ls_member member)
{
	const int64_t positions = (int64_t)s->blocks * s->h * s->w, rows = s->paired ? (s->n + 1) / 2 * 2 : s->n;
	const int together = !s->only_read && rows == s->n;
	int64_t begin, end;

	if (s->segment > 0) {
		round_turned(kernels, s, x, out, member);
		return;
	}
	ls_team_range(member, positions, &begin, &end);
	for (int64_t p = begin, count; p < end; p += count) {
		count = together ? (end - p < 64 ? end - p : 64) : 1;
		if (s->only_read && !is_read(s->only_read, s->w, p % ((int64_t)s->h * s->w)))
			continue;
		if (s->paired)
			kernels->pairs(x + p * s->n * s->row, count * s->n, s->row, s->row,
				       out + p * rows * s->row / 2);
		else
			kernels->rows(x + p * s->n * s->row, count * s->n * s->row, out + p * rows * s->row / 2);
	}
}

ls_conv_bf16_rows ls_conv_bf16_x(const ls_conv_plan *plan, int paired)
{
	const ls_conv_walk *f = &plan->forward;
	return (ls_conv_bf16_rows){ .blocks = f->source_blocks,
				    .h = f->source_h,
				    .w = f->source_w,
				    .row = f->source_stride,
				    .n = plan->n,
				    .paired = paired,
				    .only_read = reads_all(&plan->geometry) ? NULL : &plan->geometry };
}

ls_conv_bf16_rows ls_conv_bf16_dy(const ls_conv_plan *plan, int paired)
{
	const ls_conv_walk *f = &plan->forward;
	return (ls_conv_bf16_rows){
		.blocks = f->blocks, .h = f->h, .w = f->w, .row = f->panel, .n = plan->n, .paired = paired
	};
}

/* Blocks as forward wants them: (slot, out block, in block), each in pairs of inputs, (in_panel / 2, out_panel). */
static void pack_forward(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *weights, uint32_t *out,
			 ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	const int64_t floats = (int64_t)f->source_panel * f->panel;
	const size_t words = block_words(f->source_panel, f->panel);
	int64_t begin, end;

	ls_team_range(member, (int64_t)plan->reachable_taps * f->blocks * f->source_blocks, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		kernels->pairs(weights + i * floats, f->source_panel, f->panel, f->panel, out + (size_t)i * words);
}

/* As the gradient of the input wants them: (slot, in block, out block), each in pairs of outputs,
 * (out_panel / 2, in_panel). */
static void pack_backward(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *weights, uint32_t *out,
			  uint32_t *spare, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	const int64_t floats = (int64_t)f->source_panel * f->panel;
	int64_t begin, end;

	ls_team_range(member, (int64_t)plan->reachable_taps * f->blocks * f->source_blocks, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		const int64_t s = i % f->source_blocks, block = i / f->source_blocks % f->blocks,
			      slot = i / f->source_blocks / f->blocks;
		kernels->rows(weights + i * floats, floats, spare);
		ls_simd_get()->transpose(
			(const float *)spare, f->source_panel, f->panel / 2, f->panel / 2,
			(float *)(out + ((slot * f->source_blocks + s) * f->blocks + block) * floats / 2),
			f->source_panel);
	}
}

/* ---- the walk ---- */

typedef struct walk_job {
	const ls_conv_plan *plan;
	const ls_conv_walk *walk;
	const uint32_t *source, *weights;
	float *out;
	int accumulate;
	const ls_bf16_kernels *kernels;
} walk_job;

/* Some positions of a tile, and the parts of their sum that are not added yet. */
typedef struct stretch {
	ls_bf16_shape shape;
	ls_bf16_part parts[TOGETHER];
	int count;
	float *out;
} stretch;

static void add_parts(const walk_job *job, stretch *s)
{
	if (s->count > 0) {
		job->kernels->gemm(&s->shape, s->parts, s->count, s->out);
		s->shape.accumulate = 1;
		s->count = 0;
	}
}

/* One tap, whose source is position (sy, sx): a part for each source block. */
static void add_tap(const walk_job *job, stretch *s, int64_t first, int64_t block, int tap, int sy, int sx)
{
	const ls_conv_walk *w = job->walk;
	const int64_t n = job->plan->n, row = w->source_stride / 2,
		      plane = (int64_t)w->source_h * w->source_w * n * row;
	const size_t words = block_words(w->source_panel, w->panel);
	const uint32_t *source = job->source + (((int64_t)sy * w->source_w + sx) * n + first) * row;
	const uint32_t *weights =
		job->weights +
		(size_t)((ls_conv_slot_of(job->plan, tap) * w->blocks + block) * w->source_blocks) * words;

	for (int64_t b = 0; b < w->source_blocks; b++) {
		s->parts[s->count++] = (ls_bf16_part){ source + b * plane, weights + (size_t)b * words };
		if (s->count == TOGETHER)
			add_parts(job, s);
	}
}

/* Positions [a, b) of a tile, which the same taps reach. */
static void walk_stretch(const walk_job *job, int64_t block, const ls_conv_tile *t, int a, int b)
{
	const ls_conv_walk *w = job->walk;
	const int64_t rows = (b - a) * t->count;
	stretch s = { .shape = { .rows = (int)rows,
				 .pairs = (w->source_panel + 1) / 2,
				 .cols = w->panel,
				 .ldx = w->source_stride / 2,
				 .ldw = w->panel,
				 .ldy = w->panel,
				 .accumulate = job->accumulate } };

	s.out = job->out + (((block * w->h + t->y) * w->w + a) * job->plan->n + t->first) * w->panel;
	for (int r = 0; r < w->kernel_h; r++) {
		int sy = w->map_y[t->y * w->kernel_h + r];
		for (int c = 0; sy >= 0 && c < w->kernel_w; c++) {
			int sx = w->map_x[a * w->kernel_w + c];
			if (sx >= 0)
				add_tap(job, &s, t->first, block, r * w->kernel_w + c, sy, sx);
		}
	}
	add_parts(job, &s);
	if (!s.shape.accumulate) /* no tap reaches them */
		memset(s.out, 0, sizeof(float) * (size_t)(rows * w->panel));
}

/* Columns of the filter that reach position a reach b, and no others. */
static int reached_alike(const ls_conv_walk *w, int a, int b)
{
	for (int c = 0; c < w->kernel_w; c++)
		if ((w->map_x[a * w->kernel_w + c] < 0) != (w->map_x[b * w->kernel_w + c] < 0))
			return 0;
	return 1;
}

static void walk_tile(const walk_job *job, int64_t block, const ls_conv_tile *t)
{
	for (int a = t->x0, b; a < t->x1; a = b) {
		for (b = a + 1; b < t->x1 && reached_alike(job->walk, a, b); b++)
			;
		walk_stretch(job, block, t, a, b);
	}
}

/* All tiles of a block in turn, or where the weights are few all blocks of a tile, whose source is in cache then. */
static void unit_place(const ls_conv_plan *plan, const ls_conv_walk *w, int64_t unit, int64_t *block, int64_t *tile)
{
	const int64_t words =
		(int64_t)plan->reachable_taps * w->blocks * w->source_blocks * w->source_panel * w->panel / 2;
	const int near = words <= WEIGHT_WORDS_NEAR;
	*block = near ? unit % w->blocks : unit / w->tiles;
	*tile = near ? unit / w->blocks : unit % w->tiles;
}

void ls_conv_bf16_forward(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *x,
			  const float *weights, const ls_conv_epilogue *e, float *y, float *scratch, ls_member member)
{
	const ls_conv_walk *w = &plan->forward;
	const ls_conv_bf16_rows rows = ls_conv_bf16_x(plan, 0);
	uint32_t *source = (uint32_t *)scratch, *packed = source + ls_conv_bf16_rows_words(&rows);
	const walk_job job = { plan, w, source, packed, y, 0, kernels };
	int64_t unit, block, index;

	ls_conv_bf16_round(kernels, &rows, x, source, member);
	pack_forward(kernels, plan, weights, packed, member);
	ls_team_barrier(member);
	while ((unit = ls_team_next(member, w->tiles * w->blocks)) >= 0) {
		unit_place(plan, w, unit, &block, &index);
		const ls_conv_tile t = ls_conv_tile_at(w, plan->n, index);
		walk_tile(&job, block, &t);
		ls_conv_finish_tile(plan, e, block, index, (t.x1 - t.x0) * t.count,
				    y + (((block * w->h + t.y) * w->w + t.x0) * plan->n + t.first) * w->panel);
	}
}

void ls_conv_bf16_backward_data(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *dy,
				const float *weights, int accumulate, float *dx, float *scratch, ls_member member)
{
	const ls_conv_walk *w = &plan->backward;
	const ls_conv_bf16_rows rows = ls_conv_bf16_dy(plan, 0);
	const size_t block = block_words(w->source_panel, w->panel);
	uint32_t *source = (uint32_t *)scratch, *spare = source + ls_conv_bf16_rows_words(&rows);
	uint32_t *packed = spare + (size_t)member.size * block;
	const walk_job job = { plan, w, source, packed, dx, accumulate, kernels };
	int64_t unit, to, index;

	ls_conv_bf16_round(kernels, &rows, dy, source, member);
	pack_backward(kernels, plan, weights, packed, spare + (size_t)member.rank * block, member);
	ls_team_barrier(member);
	while ((unit = ls_team_next(member, w->tiles * w->blocks)) >= 0) {
		unit_place(plan, w, unit, &to, &index);
		const ls_conv_tile t = ls_conv_tile_at(w, plan->n, index);
		walk_tile(&job, to, &t);
	}
}
