/*
 * conv_bf16_wgrad.c - weight gradients in bf16: dw[tap] = sum over positions and pairs of samples of x^T . dy.
 *
 * A unit of work is that of conv_wgrad.c. A chunk of positions at a time, whose operands stay in the second-level cache
 * over the taps, is one product of several parts: rows of positions that lie side by side, or with a stride single
 * positions. Every element of the result adds positions in row-major order, and pairs of samples in order, whatever the
 * grouping. Steps of bf16-amx are of the pairs of a part, so there the parts are in the bits: they depend on the shapes
 * and the micro-batch alone.
 *
 * Where the kernels want x transposed, its channels are rows and positions lie side by side in them, so that a tap
 * reads its part where it lies, too.
 */
#include "kernels/conv_bf16.h"

#include "kernels/conv_bf16_parts.h"

enum {
	CHUNK_PAIRS = 256, /* of samples, in a chunk: 64 KB of each operand */
	TOGETHER = 64      /* parts of a product */
};

typedef struct wgrad_unit {
	const ls_conv_plan *plan;
	const uint32_t *x, *dy; /* in pairs of samples */
	float *dweights;
	ls_conv_wgrad_unit at;
	int segment;                         /* positions of x that are transposed together; 0: x is not transposed */
	char started[LS_CONV_TAPS_TOGETHER]; /* by tap: products add from now on */
	const ls_bf16_kernels *kernels;
} wgrad_unit;

static int64_t half_of(const ls_conv_plan *plan)
{
	return (plan->n + 1) / 2;
}

/* Positions of a chunk at most; 0 where one position alone has more pairs than a chunk. */
static int64_t chunk_most(const ls_conv_plan *plan)
{
	const int64_t most = CHUNK_PAIRS / half_of(plan);
	return most < TOGETHER ? most : TOGETHER;
}

/* Positions of a row in a chunk: all of them where rows are short. */
static int chunk_positions(const ls_conv_plan *plan)
{
	const int64_t most = chunk_most(plan);
	return most < 1 ? 1 : most < plan->forward.w ? (int)most : plan->forward.w;
}

/* Whole rows of x, which taps move over; those of a chunk where nothing moves; single positions where there is a
 * stride. */
static int segment_of(const ls_conv_plan *plan)
{
	const ls_conv_geometry *g = &plan->geometry;
	if (g->stride > 1)
		return 1;
	return plan->kernel_taps == 1 && g->padding == 0 ? chunk_positions(plan) : plan->forward.source_w;
}

/* The segment that has source position p of a row: where it begins, and the words of its rows. */
static int64_t segment_row(const wgrad_unit *u, int p)
{
	const int first = p / u->segment * u->segment;
	return half_of(u->plan) * ls_min_int(u->segment, u->plan->forward.source_w - first);
}

/* Where x of this unit's channels begins at position p of source row sy. */
static const uint32_t *x_at(const wgrad_unit *u, int sy, int p)
{
	const ls_conv_walk *f = &u->plan->forward;
	const int64_t half = half_of(u->plan), channel = (int64_t)u->at.part * u->plan->wgrad_depth;
	const uint32_t *row = u->x + (u->at.source * f->source_h + sy) * f->source_w * half * f->source_stride;
	if (!u->segment)
		return row + p * half * f->source_stride + channel;
	const int first = p / u->segment * u->segment;
	return row + first * half * f->source_stride + channel * segment_row(u, p) + (p - first) * half;
}

/* Tap `tap` at output positions [a, b) of row y and their source: appended to `parts`, of one position or of all. */
static int add_positions(const wgrad_unit *u, int tap, int y, int sy, int a, int b, ls_bf16_part *parts)
{
	const ls_conv_walk *f = &u->plan->forward;
	const int64_t half = half_of(u->plan);
	const uint32_t *dy = u->dy + (u->at.block * f->h + y) * f->w * half * f->panel;
	const int step = u->plan->geometry.stride == 1 ? b - a : 1;
	int count = 0;

	for (int p = a; p < b; p += step)
		parts[count++] = (ls_bf16_part){ x_at(u, sy, f->map_x[p * f->kernel_w + tap % f->kernel_w]),
						 dy + p * half * f->panel };
	return count;
}

/* Output rows [y0, y1) from position x0 up to x1, against one tap. */
static void wgrad_tap(wgrad_unit *u, int tap, int y0, int y1, int x0, int x1)
{
	const ls_conv_plan *plan = u->plan;
	const ls_conv_walk *f = &plan->forward;
	const ls_conv_tile t = { .x0 = x0, .x1 = x1 };
	const int is_last = u->at.part == plan->wgrad_parts - 1;
	const int64_t depth = is_last ? f->source_panel - u->at.part * plan->wgrad_depth : plan->wgrad_depth;
	const int64_t index =
		((int64_t)ls_conv_slot_of(plan, tap) * f->blocks + u->at.block) * f->source_blocks + u->at.source;
	float *out = u->dweights + (index * f->source_panel + (int64_t)u->at.part * plan->wgrad_depth) * f->panel;
	ls_bf16_part parts[TOGETHER];
	int a, b, count = 0;

	if (!ls_conv_reach(f, &t, tap % f->kernel_w, &a, &b))
		return;
	const int alone = plan->geometry.stride == 1 ? 1 : b - a; /* parts of a row */
	ls_bf16_shape s = { .rows = (int)depth,
			    .pairs = (int)(half_of(plan) * (plan->geometry.stride == 1 ? b - a : 1)),
			    .cols = f->panel,
			    .ldx = u->segment ? segment_row(u, f->map_x[a * f->kernel_w + tap % f->kernel_w])
					      : f->source_stride,
			    .ldw = f->panel,
			    .ldy = f->panel,
			    .transposed = !u->segment,
			    .accumulate = u->started[tap - u->at.first] };
	for (int y = y0; y < y1; y++) {
		int sy = f->map_y[y * f->kernel_h + tap / f->kernel_w];
		if (sy >= 0)
			count += add_positions(u, tap, y, sy, a, b, parts + count);
		if (count > 0 && (y + 1 == y1 || count + alone > TOGETHER)) {
			u->kernels->gemm(&s, parts, count, out);
			s.accumulate = u->started[tap - u->at.first] = 1;
			count = 0;
		}
	}
}

/* Chunks of whole rows where they are short, else of a piece of one row. */
static void wgrad_walk(wgrad_unit *u)
{
	const ls_conv_walk *f = &u->plan->forward;
	const int64_t most = chunk_most(u->plan);
	const int positions = chunk_positions(u->plan);
	const int rows = positions == f->w ? (int)(most < f->w ? 1 : most / f->w) : 1;

	for (int y = 0; y < f->h; y += rows)
		for (int x = 0; x < f->w; x += positions)
			for (int tap = u->at.first; tap < u->at.last; tap++)
				wgrad_tap(u, tap, y, ls_min_int(y + rows, f->h), x, ls_min_int(x + positions, f->w));
}

void ls_conv_bf16_backward_weights(const ls_bf16_kernels *kernels, const ls_conv_plan *plan, const float *x,
				   const float *dy, int accumulate, float *dweights, float *scratch, ls_member member)
{
	ls_conv_bf16_rows in = ls_conv_bf16_x(plan, 1), out = ls_conv_bf16_dy(plan, 1);
	uint32_t *x_pairs = (uint32_t *)scratch, *dy_pairs = x_pairs + ls_conv_bf16_rows_words(&in);
	wgrad_unit u = { .plan = plan, .x = x_pairs, .dy = dy_pairs, .dweights = dweights, .kernels = kernels };
	const ls_conv_wgrad_cut cut = ls_conv_wgrad_cut_make(plan, member.size);
	int64_t unit;

	in.segment = u.segment = kernels->turned ? segment_of(plan) : 0;
	ls_conv_bf16_round(kernels, &in, x, x_pairs, member);
	ls_conv_bf16_round(kernels, &out, dy, dy_pairs, member);
	ls_team_barrier(member);
	while ((unit = ls_team_next(member, cut.units)) >= 0) {
		u.at = ls_conv_wgrad_unit_at(plan, &cut, unit);
		for (int i = 0; i < cut.group; i++)
			u.started[i] = (char)accumulate;
		wgrad_walk(&u);
	}
}
