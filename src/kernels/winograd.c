/*
 * winograd.c - plan and walk of Winograd's algorithm, forward and for the input's gradient.
 */
#include "kernels/winograd_walk.h"

#include "params/panel.h"

/* Smaller maps have too few taps inside for 16 products to be fewer: measured, docs/decisions/0041-large-images.md. */
#define MAP_LEAST 4

static int can_be_winograd(const ls_conv_geometry *g)
{
	int16_t slot[9];
	int least = 2; /* a pair of outputs both ways, forward and backward */
	return g->kernel_h == 3 && g->kernel_w == 3 && g->stride == 1 && g->padding <= 2 && !g->gathered &&
	       g->in_h >= least && g->in_w >= least && g->out_h >= least && g->out_w >= least &&
	       ls_conv_slots(g, slot) == 9;
}

int ls_conv_is_winograd(const ls_conv_geometry *g, ls_conv_algorithm algorithm)
{
	if (algorithm == LS_CONV_DIRECT || !can_be_winograd(g))
		return 0;
	return algorithm == LS_CONV_WINOGRAD ||
	       (g->out_h >= MAP_LEAST && g->out_w >= MAP_LEAST && g->in_h >= MAP_LEAST && g->in_w >= MAP_LEAST);
}

/* ---- plan -------------------------------------------------------------------------------------------------------- */

static ls_status make_products(ls_gemm (**out)[2], ls_arena *arena, const ls_winograd_walk *w, int64_t n,
			       ls_gemm_shape shape)
{
	int count = w->run > 1 ? w->run : 2;
	ls_gemm(*set)[2] = ls_arena_alloc(arena, sizeof(*set) * (size_t)count);

	if (!set)
		return LS_EMEMORY;
	for (int i = 0; i < count; i++) {
		int64_t rows = w->run > 1 ? n * (i + 1) : (i == 0 ? w->block : n % w->block);
		for (int a = 0; a < 2 && rows > 0; a++) {
			shape.rows = (int)rows;
			shape.accumulate = a;
			LS_TRY(ls_gemm_make(&set[i][a], &shape));
		}
	}
	*out = set;
	return LS_OK;
}

/* `walk` has its maps, padding and panels. */
static ls_status finish_walk(ls_winograd_walk *walk, ls_arena *arena, int64_t n)
{
	ls_gemm_shape shape = { .depth = walk->source_panel,
				.cols = walk->panel,
				.ldx = walk->source_panel,
				.ldw = walk->panel,
				.ldy = walk->panel };
	int most = n < LS_WINOGRAD_ROWS ? (int)(LS_WINOGRAD_ROWS / n) : 1, runs;

	walk->patches_h = (walk->h + 1) / 2;
	walk->patches_w = (walk->w + 1) / 2;
	runs = (walk->patches_w + most - 1) / most;
	walk->run = (walk->patches_w + runs - 1) / runs;
	walk->block = n < LS_WINOGRAD_ROWS ? n : LS_WINOGRAD_ROWS;
	runs = (walk->patches_w + walk->run - 1) / walk->run;
	walk->groups = walk->patches_h * runs * ((n + walk->block - 1) / walk->block);
	return make_products(&walk->products, arena, walk, n, shape);
}

ls_status ls_winograd_plan_make(ls_conv_plan *conv, ls_arena *arena)
{
	const ls_conv_geometry *g = &conv->geometry;
	ls_conv_walk *f = &conv->forward;
	struct ls_winograd_plan *plan = ls_arena_alloc(arena, sizeof(*plan));
	ls_gemm_shape wgrad = { .depth = f->source_panel,
				.cols = f->panel,
				.ldx = f->source_panel,
				.ldw = f->panel,
				.ldy = f->panel,
				.transposed = 1 };

	if (!plan)
		return LS_EMEMORY;
	*plan = (struct ls_winograd_plan){ .forward = { .h = g->out_h,
							.w = g->out_w,
							.source_h = g->in_h,
							.source_w = g->in_w,
							.padding = g->padding,
							.blocks = f->blocks,
							.panel = f->panel,
							.source_blocks = f->source_blocks,
							.source_panel = f->source_panel },
					   .backward = { .h = g->in_h,
							 .w = g->in_w,
							 .source_h = g->out_h,
							 .source_w = g->out_w,
							 .padding = 2 - g->padding,
							 .blocks = f->source_blocks,
							 .panel = f->source_panel,
							 .source_blocks = f->blocks,
							 .source_panel = f->panel } };
	LS_TRY(finish_walk(&plan->forward, arena, conv->n));
	LS_TRY(finish_walk(&plan->backward, arena, conv->n));
	LS_TRY(make_products(&plan->wgrad, arena, &plan->forward, conv->n, wgrad));
	f->h = g->out_h;
	f->w = g->out_w;
	/* Tiles as conv.c counts them: rows of a group's outputs, or its positions where samples are cut. */
	f->block = plan->forward.block;
	f->run = f->block < conv->n ? 1 : ls_min_int(2 * plan->forward.run, f->w);
	f->tiles = f->h * (int64_t)((f->w + f->run - 1) / f->run) * ((conv->n + f->block - 1) / f->block);
	conv->winograd = plan;
	return LS_OK;
}

static size_t padded(int channels)
{
	return (size_t)ls_panel_blocks(channels) * (size_t)ls_panel_width(channels);
}

/* Of each thread: a column of V and of the products, which the gradient of weights uses for V and A dy A^T, or the nine
 * blocks of a filter, transposed. */
static size_t thread_floats(const ls_conv_geometry *g)
{
	size_t in = padded(g->in_c), out = padded(g->out_c), wide = in > out ? in : out;
	size_t walk = 4 * LS_WINOGRAD_ROWS * (wide + LS_PANEL_MAX);
	size_t filter = (size_t)9 * LS_PANEL_MAX * LS_PANEL_MAX;
	return walk > filter ? walk : filter;
}

size_t ls_winograd_scratch_floats(const ls_conv_geometry *g, int threads)
{
	return 16 * padded(g->in_c) * padded(g->out_c) + (size_t)threads * thread_floats(g);
}

float *ls_winograd_thread_scratch(const ls_conv_plan *plan, float *scratch, ls_member member)
{
	const ls_conv_geometry *g = &plan->geometry;
	return scratch + 16 * padded(g->in_c) * padded(g->out_c) + (size_t)member.rank * thread_floats(g);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* U of all filters: (column, out block, row, in block, in_panel, out_panel). */
static void transform_weights(const ls_conv_plan *plan, const float *weights, float *u, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->forward;
	int64_t size = (int64_t)w->panel * w->source_panel, pairs = (int64_t)w->blocks * w->source_blocks, pair;

	while ((pair = ls_team_next(member, pairs)) >= 0) {
		const float *g[9];
		float *to[16];
		for (int tap = 0; tap < 9; tap++)
			g[tap] = weights + (ls_conv_slot_of(plan, tap) * pairs + pair) * size;
		for (int e = 0; e < 16; e++)
			to[e] = u +
				ls_winograd_block(w, e / 4, e % 4, pair / w->source_blocks, pair % w->source_blocks);
		ls_simd_get()->winograd_weights(g, size, to);
	}
	ls_team_barrier(member);
}

/* The same for the input's gradient: filters turned by 180 degrees, their blocks transposed. */
static void transform_turned(const ls_conv_plan *plan, const float *weights, float *spare, float *u, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->backward;
	const ls_simd *simd = ls_simd_get();
	int64_t size = (int64_t)w->panel * w->source_panel, pairs = (int64_t)w->blocks * w->source_blocks, pair;

	while ((pair = ls_team_next(member, pairs)) >= 0) {
		int64_t out = pair / w->blocks, in = pair % w->blocks;
		const float *g[9];
		float *to[16];
		for (int tap = 0; tap < 9; tap++) {
			const float *block = weights + (ls_conv_slot_of(plan, 8 - tap) * pairs + pair) * size;
			simd->transpose(block, w->panel, w->source_panel, w->source_panel, spare + tap * size,
					w->panel);
			g[tap] = spare + tap * size;
		}
		for (int e = 0; e < 16; e++)
			to[e] = u + ls_winograd_block(w, e / 4, e % 4, in, out);
		simd->winograd_weights(g, size, to);
	}
	ls_team_barrier(member);
}

/* ---- walk -------------------------------------------------------------------------------------------------------- */

const float ls_winograd_zeros[LS_WINOGRAD_ROWS * LS_PANEL_MAX];

void ls_winograd_input_column(const ls_winograd_walk *w, int64_t n, const ls_winograd_group *g, int j, int patches,
			      const float *source, int64_t block, float *v, int64_t plane)
{
	static const int column[4][2] = { { 0, 2 }, { 1, 2 }, { 2, 1 }, { 1, 3 } };
	int64_t position = n * w->source_panel, floats = g->count * w->source_panel;
	const float *map = source + block * w->source_h * w->source_w * position + g->first * w->source_panel;

	for (int p = 0; p < patches; p++) {
		const float *d[4][2];
		for (int r = 0; r < 4; r++)
			for (int c = 0; c < 2; c++) {
				int y = 2 * g->y - w->padding + r, x = 2 * (g->x0 + p) - w->padding + column[j][c];
				int inside = y >= 0 && y < w->source_h && x >= 0 && x < w->source_w;
				d[r][c] = inside ? map + ((int64_t)y * w->source_w + x) * position : ls_winograd_zeros;
			}
		ls_simd_get()->winograd_input(d, j == 1, floats, v + p * floats, plane);
	}
}

typedef struct walk_job {
	const ls_conv_plan *plan;
	const ls_winograd_walk *walk;
	const float *source, *u;
	float *out;
	float *v, *m; /* this thread's */
	int accumulate;
} walk_job;

/* The outputs of patch `p` of the group in block `block`; returns how many rows of them there are. */
static int output_places(const walk_job *job, const ls_winograd_group *g, int64_t block, int p, float *y[2][2])
{
	const ls_winograd_walk *w = job->walk;
	int oy = 2 * g->y, ox = 2 * (g->x0 + p);
	int64_t position = (int64_t)job->plan->n * w->panel;
	float *first = job->out + ((block * w->h + oy) * w->w + ox) * position + g->first * w->panel;

	for (int r = 0; r < 2; r++)
		for (int c = 0; c < 2; c++)
			y[r][c] = first + (r * w->w + c) * position;
	return oy + 1 < w->h ? 2 : 1;
}

/* The products of column j for one block, and what they add to the outputs. */
static void column_outputs(const walk_job *job, const ls_winograd_group *g, int j, int patches, int64_t block)
{
	const ls_winograd_walk *w = job->walk;
	int64_t rows = patches * g->count, plane = rows * w->panel, size = (int64_t)w->panel * w->source_panel;
	const float *u = job->u + ls_winograd_block(w, 0, j, block, 0);
	int elements = 2 * g->y + 1 < w->h ? 4 : 3;
	ls_winograd_put start = job->accumulate ? LS_WINOGRAD_ADD : LS_WINOGRAD_SET;
	const ls_winograd_put how[4][2] = { { start, LS_WINOGRAD_SKIP },
					    { LS_WINOGRAD_ADD, start },
					    { LS_WINOGRAD_ADD, LS_WINOGRAD_SUBTRACT },
					    { LS_WINOGRAD_SKIP, LS_WINOGRAD_SUBTRACT } };

	for (int i = 0; i < elements; i++)
		for (int s = 0; s < w->source_blocks; s++) {
			const ls_gemm *product =
				ls_conv_product(w->products, w->run, w->block, patches, g->count, s > 0);
			const float *v = job->v + (i * w->source_blocks + s) * rows * w->source_panel;
			ls_gemm_run(product, v, u + (i * w->source_blocks + s) * size, job->m + i * plane);
		}
	for (int p = 0; p < patches; p++) {
		float *y[2][2];
		int height = output_places(job, g, block, p, y);
		int has_pair = 2 * (g->x0 + p) + 1 < w->w;
		ls_winograd_put here[2] = { how[j][0], has_pair ? how[j][1] : LS_WINOGRAD_SKIP };
		ls_simd_get()->winograd_output(job->m + p * g->count * w->panel, plane, height, g->count * w->panel,
					       here, y);
	}
}

/* Blocks [first, last) of a group's outputs. */
static void walk_group(const walk_job *job, const ls_winograd_group *g, int64_t first, int64_t last)
{
	const ls_winograd_walk *w = job->walk;

	for (int j = 0; j < 4; j++) {
		int patches = ls_winograd_patches(w, g, j);
		int64_t floats = patches * g->count * w->source_panel;
		for (int64_t s = 0; patches > 0 && s < w->source_blocks; s++)
			ls_winograd_input_column(w, job->plan->n, g, j, patches, job->source, s, job->v + s * floats,
						 w->source_blocks * floats);
		for (int64_t block = first; patches > 0 && block < last; block++)
			column_outputs(job, g, j, patches, block);
	}
}

/* Bias, relu and moments of one row of outputs of a group: a tile, or one per position where samples are cut. */
static void finish_row(const ls_conv_plan *plan, const ls_conv_epilogue *e, const ls_winograd_group *g, int64_t block,
		       int y, float *out)
{
	const ls_winograd_walk *w = &plan->winograd->forward;
	const ls_conv_walk *f = &plan->forward;
	int64_t blocks = (plan->n + w->block - 1) / w->block, runs = (w->w + f->run - 1) / f->run;
	int end = ls_min_int(2 * g->x1, w->w);

	for (int x = 2 * g->x0; x < end; x += f->run) {
		int64_t index = (y * runs + x / f->run) * blocks + g->first / w->block;
		float *tile = out + (((block * w->h + y) * w->w + x) * plan->n + g->first) * w->panel;
		ls_conv_finish_tile(plan, e, block, index, (ls_min_int(x + f->run, end) - x) * g->count, tile);
	}
}

/* Parts of the blocks a group's outputs are cut into: more than one where groups are too few for the team, since each
 * part transforms the input again. */
static int64_t block_parts(const ls_winograd_walk *w, int threads)
{
	int64_t wanted = threads > 1 ? (4 * threads + w->groups - 1) / w->groups : 1;
	return wanted < w->blocks ? wanted : w->blocks;
}

static walk_job job_of(const ls_conv_plan *plan, const ls_winograd_walk *w, float *scratch, ls_member member)
{
	float *mine = ls_winograd_thread_scratch(plan, scratch, member);
	return (walk_job){ .plan = plan,
			   .walk = w,
			   .u = scratch,
			   .v = mine,
			   .m = mine + (int64_t)4 * LS_WINOGRAD_ROWS * w->source_blocks * w->source_panel };
}

void ls_winograd_forward(const ls_conv_plan *plan, const float *x, const float *weights,
			 const ls_conv_epilogue *epilogue, float *scratch, float *y, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->forward;
	walk_job job = job_of(plan, w, scratch, member);
	int64_t parts = block_parts(w, member.size), unit;

	job.source = x;
	job.out = y;
	transform_weights(plan, weights, scratch, member);
	while ((unit = ls_team_next(member, w->groups * parts)) >= 0) {
		ls_winograd_group g = ls_winograd_group_at(w, plan->n, unit / parts);
		int64_t first = unit % parts * w->blocks / parts, last = (unit % parts + 1) * w->blocks / parts;
		walk_group(&job, &g, first, last);
		for (int64_t block = first; block < last; block++)
			for (int row = 2 * g.y; row < ls_min_int(2 * g.y + 2, w->h); row++)
				finish_row(plan, epilogue, &g, block, row, y);
	}
}

void ls_winograd_backward_data(const ls_conv_plan *plan, const float *dy, const float *weights, float *scratch,
			       int accumulate, float *dx, ls_member member)
{
	const ls_winograd_walk *w = &plan->winograd->backward;
	walk_job job = job_of(plan, w, scratch, member);
	int64_t parts = block_parts(w, member.size), unit;

	job.source = dy;
	job.out = dx;
	job.accumulate = accumulate;
	transform_turned(plan, weights, job.v, scratch, member);
	while ((unit = ls_team_next(member, w->groups * parts)) >= 0) {
		ls_winograd_group g = ls_winograd_group_at(w, plan->n, unit / parts);
		walk_group(&job, &g, unit % parts * w->blocks / parts, (unit % parts + 1) * w->blocks / parts);
	}
}
