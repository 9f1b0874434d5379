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
	int64_t block, source; /* out block, in block */
	int first, last;       /* taps */
	int part;
	int started[LS_CONV_TAPS_TOGETHER]; /* by tap: products add from now on */
} wgrad_unit;

/* Tap `tap` at output positions [a, b) of row y: one product for each block of samples. */
static void wgrad_products(wgrad_unit *u, int tap, int y, int sy, int a, int b)
{
	const ls_conv_plan *plan = u->plan;
	const ls_conv_walk *f = &plan->forward;
	int64_t n = plan->n, step = plan->wgrad_block, row = (int64_t)u->part * plan->wgrad_depth;
	int sx = f->map_x[a * f->kernel_w + tap % f->kernel_w], *started = &u->started[tap - u->first];
	const float *x = u->x + ((u->source * f->source_h + sy) * f->source_w + sx) * n * f->source_stride + row;
	const float *dy = u->dy + ((u->block * f->h + y) * f->w + a) * n * f->panel;
	int64_t index = ((int64_t)ls_conv_slot_of(plan, tap) * f->blocks + u->block) * f->source_blocks + u->source;
	float *out = u->dweights + (index * f->source_panel + row) * f->panel;
	ls_gemm(*products)[2] = plan->wgrad[u->part == plan->wgrad_parts - 1];

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
		for (int tap = u->first; tap < u->last; tap++) {
			int sy = f->map_y[y * f->kernel_h + tap / f->kernel_w];
			if (sy >= 0 && ls_conv_reach(f, &t, tap % f->kernel_w, &a, &b))
				wgrad_products(u, tap, y, sy, a, b);
		}
	}
}

int ls_conv_tap_group(const ls_conv_plan *plan, int64_t units, int threads)
{
	int64_t groups = threads == 1 ? 1 : (6 * threads + units - 1) / units;
	int64_t size = (plan->kernel_taps + groups - 1) / groups;
	return ls_min_int((int)size, LS_CONV_TAPS_TOGETHER);
}

void ls_conv_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, int accumulate,
			      float *dweights, ls_member member)
{
	const ls_conv_walk *f = &plan->forward;
	wgrad_unit u = { .plan = plan, .x = x, .dy = dy, .dweights = dweights };
	int64_t parts = plan->wgrad_parts, pairs = (int64_t)f->blocks * f->source_blocks;
	int group = ls_conv_tap_group(plan, pairs * parts, member.size);
	int64_t groups = (plan->kernel_taps + group - 1) / group, unit;

	while ((unit = ls_team_next(member, pairs * groups * parts)) >= 0) {
		int64_t pair = unit / (groups * parts);
		u.block = pair / f->source_blocks;
		u.source = pair % f->source_blocks;
		u.first = (int)(unit / parts % groups) * group;
		u.last = ls_min_int(u.first + group, plan->kernel_taps);
		u.part = (int)(unit % parts);
		for (int i = 0; i < group; i++)
			u.started[i] = accumulate;
		for (int y = 0; y < f->h; y++)
			wgrad_row(&u, y);
	}
}
