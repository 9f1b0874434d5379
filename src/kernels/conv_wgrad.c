/*
 * conv_wgrad.c - weight gradients: dw[tap] = sum over positions and samples of x^T . dy.
 *
 * A unit of work is one (out block, in block) pair, a group of taps, and a part of the block's rows. Positions run
 * outermost, so that both operands stay in cache over the taps; every element of the result adds positions and samples
 * in order, whatever the grouping.
 */
#include "kernels/conv_walk.h"

typedef struct wgrad_unit {
	const ls_conv_plan *plan;
	const float *x, *dy;
	float *dweights;
	ls_conv_wgrad_unit at;
	int started[LS_CONV_TAPS_TOGETHER]; /* by tap: products add from now on */
} wgrad_unit;

/* Tap `tap` at output positions [a, b) of row y: one product for each block of samples. */
static void wgrad_products(wgrad_unit *u, int tap, int y, int sy, int a, int b)
{
	const ls_conv_plan *plan = u->plan;
	const ls_conv_walk *f = &plan->forward;
	int64_t n = plan->n, step = plan->wgrad_block, row = (int64_t)u->at.part * plan->wgrad_depth;
	int sx = f->map_x[a * f->kernel_w + tap % f->kernel_w], *started = &u->started[tap - u->at.first];
	const float *x = u->x + ((u->at.source * f->source_h + sy) * f->source_w + sx) * n * f->source_stride + row;
	const float *dy = u->dy + ((u->at.block * f->h + y) * f->w + a) * n * f->panel;
	int64_t index =
		((int64_t)ls_conv_slot_of(plan, tap) * f->blocks + u->at.block) * f->source_blocks + u->at.source;
	float *out = u->dweights + (index * f->source_panel + row) * f->panel;
	ls_gemm(*products)[2] = plan->wgrad[u->at.part == plan->wgrad_parts - 1];

	for (int64_t i = 0; i < n; i += step) {
		int64_t count = n - i < step ? n - i : step;
		const ls_gemm *product = ls_conv_product(products, plan->wgrad_run, step, b - a, count, *started);
		ls_gemm_run(product, x + i * f->source_stride, dy + i * f->panel, out);
		*started = 1;
	}
}

/* Row y of the output against the unit's taps. */
static void wgrad_row(wgrad_unit *u, int y)
{
	const ls_conv_walk *f = &u->plan->forward;
	int run = u->plan->wgrad_run, a, b;

	for (int x0 = 0; x0 < f->w; x0 += run) {
		ls_conv_tile t = { .x0 = x0, .x1 = ls_min_int(x0 + run, f->w) };
		for (int tap = u->at.first; tap < u->at.last; tap++) {
			int sy = f->map_y[y * f->kernel_h + tap / f->kernel_w];
			if (sy >= 0 && ls_conv_reach(f, &t, tap % f->kernel_w, &a, &b))
				wgrad_products(u, tap, y, sy, a, b);
		}
	}
}

/* Taps of a unit, where there are `units` without cutting taps. */
static int tap_group(const ls_conv_plan *plan, int64_t units, int threads)
{
	int64_t groups = threads == 1 ? 1 : (6 * threads + units - 1) / units;
	int64_t size = (plan->kernel_taps + groups - 1) / groups;
	return ls_min_int((int)size, LS_CONV_TAPS_TOGETHER);
}

ls_conv_wgrad_cut ls_conv_wgrad_cut_make(const ls_conv_plan *plan, int threads)
{
	int64_t parts = plan->wgrad_parts, pairs = (int64_t)plan->forward.blocks * plan->forward.source_blocks;
	int group = tap_group(plan, pairs * parts, threads);
	int64_t groups = (plan->kernel_taps + group - 1) / group;

	return (ls_conv_wgrad_cut){ group, groups, parts, pairs * groups * parts };
}

ls_conv_wgrad_unit ls_conv_wgrad_unit_at(const ls_conv_plan *plan, const ls_conv_wgrad_cut *cut, int64_t unit)
{
	int64_t pair = unit / (cut->groups * cut->parts);
	int first = (int)(unit / cut->parts % cut->groups) * cut->group;

	return (ls_conv_wgrad_unit){ .block = pair / plan->forward.source_blocks,
				     .source = pair % plan->forward.source_blocks,
				     .first = first,
				     .last = ls_min_int(first + cut->group, plan->kernel_taps),
				     .part = (int)(unit % cut->parts) };
}

void ls_conv_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, int accumulate,
			      float *dweights, ls_member member)
{
	const ls_conv_wgrad_cut cut = ls_conv_wgrad_cut_make(plan, member.size);
	wgrad_unit u = { .plan = plan, .x = x, .dy = dy, .dweights = dweights };
	int64_t unit;

	while ((unit = ls_team_next(member, cut.units)) >= 0) {
		u.at = ls_conv_wgrad_unit_at(plan, &cut, unit);
		for (int i = 0; i < cut.group; i++)
			u.started[i] = accumulate;
		for (int y = 0; y < plan->forward.h; y++)
			wgrad_row(&u, y);
	}
}
