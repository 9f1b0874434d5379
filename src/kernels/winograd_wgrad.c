/*
 * winograd_wgrad.c - weight gradients by Winograd's algorithm: dU = sum over patches and samples of V^T (A dy A^T),
 * then dg = G^T dU G.
 *
 * A unit of work is a block of the input, one or two of the output, and all of the 4x4, or a column or an element of it
 * where a team is large. It walks over all groups of patches and transforms both operands for itself.
 */
#include "kernels/winograd_walk.h"

#include <string.h>

/* Column j of A dy A^T in the same form. */
static void gradient_column(const ls_winograd_walk *w, int64_t n, const ls_winograd_group *g, int j, int patches,
			    const float *dy, int64_t block, float *out, int64_t plane)
{
	int64_t position = n * w->panel, floats = g->count * w->panel;
	const float *map = dy + block * w->h * w->w * position + g->first * w->panel;

	for (int p = 0; p < patches; p++) {
		const float *d[2][2];
		for (int r = 0; r < 2; r++)
			for (int c = 0; c < 2; c++) {
				int y = 2 * g->y + r, x = 2 * (g->x0 + p) + c;
				d[r][c] = y < w->h && x < w->w ? map + ((int64_t)y * w->w + x) * position
							       : ls_winograd_zeros;
			}
		ls_simd_get()->winograd_gradient(d, j, floats, out + p * floats, plane);
	}
}

/* Output blocks of a unit at most: they share V, and their dU stay in the second-level cache. */
#define BLOCKS_MOST 2

/* A block of the input with one or two of the output, and which elements of the 4x4. */
typedef struct wgrad_unit {
	const ls_conv_plan *plan;
	const float *x, *dy;
	float *du;
	float *v, *w; /* this thread's */
	int64_t first_block, last_block, source;
	int first_row, last_row, first_column, last_column;
	int started[BLOCKS_MOST][4][4]; /* products add from now on */
} wgrad_unit;

/* What column j of a group adds. */
static void add_column(wgrad_unit *u, const ls_winograd_group *g, int j)
{
	const ls_winograd_walk *w = &u->plan->winograd->forward;
	int patches = ls_winograd_patches(w, g, j),
	    last = 2 * g->y + 1 < w->h ? u->last_row : ls_min_int(u->last_row, 3);
	int64_t n = u->plan->n, rows = patches * g->count;

	if (patches == 0 || u->first_row >= last)
		return;
	ls_winograd_input_column(w, n, g, j, patches, u->x, u->source, u->v, rows * w->source_panel);
	for (int64_t block = u->first_block; block < u->last_block; block++) {
		int(*started)[4] = u->started[block - u->first_block];
		gradient_column(w, n, g, j, patches, u->dy, block, u->w, rows * w->panel);
		for (int i = u->first_row; i < last; i++) {
			const ls_gemm *product = ls_conv_product(u->plan->winograd->wgrad, w->run, w->block, patches,
								 g->count, started[i][j]);
			ls_gemm_run(product, u->v + i * rows * w->source_panel, u->w + i * rows * w->panel,
				    u->du + ls_winograd_block(w, i, j, block, u->source));
			started[i][j] = 1;
		}
	}
}

static void sum_unit(wgrad_unit *u)
{
	const ls_winograd_walk *w = &u->plan->winograd->forward;

	for (int64_t index = 0; index < w->groups; index++) {
		ls_winograd_group g = ls_winograd_group_at(w, u->plan->n, index);
		for (int j = u->first_column; j < u->last_column; j++)
			add_column(u, &g, j);
	}
}

/* Units that the 4x4 is cut into: as few as keep a team busy, since a unit walks over the whole map. */
static int unit_parts(int64_t units, int threads)
{
	int parts = 1;
	while (threads > 1 && units * parts < 4 * threads && parts < 16)
		parts *= 4;
	return parts;
}

static void finish_weights(const ls_conv_plan *plan, const float *du, int accumulate, float *dweights, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->forward;
	int64_t size = (int64_t)w->panel * w->source_panel, pairs = (int64_t)w->blocks * w->source_blocks, pair;

	while ((pair = ls_team_next(member, pairs)) >= 0) {
		const float *u[16];
		float *dg[9];
		for (int e = 0; e < 16; e++)
			u[e] = du +
			       ls_winograd_block(w, e / 4, e % 4, pair / w->source_blocks, pair % w->source_blocks);
		for (int tap = 0; tap < 9; tap++)
			dg[tap] = dweights + (ls_conv_slot_of(plan, tap) * pairs + pair) * size;
		ls_simd_get()->winograd_weights_backward(u, size, accumulate, dg);
	}
}

void ls_winograd_backward_weights(const ls_conv_plan *plan, const float *x, const float *dy, float *scratch,
				  int accumulate, float *dweights, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->forward;
	float *mine = ls_winograd_thread_scratch(plan, scratch, member);
	wgrad_unit u = { .plan = plan,
			 .x = x,
			 .dy = dy,
			 .du = scratch,
			 .v = mine,
			 .w = mine + (int64_t)4 * LS_WINOGRAD_ROWS * w->source_panel };
	int64_t couples = (w->blocks + BLOCKS_MOST - 1) / BLOCKS_MOST, units = couples * w->source_blocks, unit;
	int parts = unit_parts(units, member.size), rows = parts == 16 ? 1 : 4, columns = parts > 1 ? 1 : 4;

	while ((unit = ls_team_next(member, units * parts)) >= 0) {
		int part = (int)(unit % parts);
		u.first_block = unit / parts / w->source_blocks * BLOCKS_MOST;
		u.last_block = ls_min_int((int)u.first_block + BLOCKS_MOST, w->blocks);
		u.source = unit / parts % w->source_blocks;
		u.first_row = part / 4 * rows % 4;
		u.last_row = u.first_row + rows;
		u.first_column = part % 4;
		u.last_column = u.first_column + columns;
		memset(u.started, 0, sizeof(u.started));
		sum_unit(&u);
	}
	ls_team_barrier(member);
	finish_weights(plan, scratch, accumulate, dweights, member);
}
