/*
 * conv_kit.h - one convolution for the tests of its kernels: operands in both layouts, plans for teams of 1, 2 and 3
 * threads, and all three products of it in fp32, by Winograd's algorithm or in bf16.
 */
#ifndef LS_TESTS_CONV_KIT_H
#define LS_TESTS_CONV_KIT_H

#include "unit/kernels/simd_check.h"

#include <stdio.h>

#include "kernels/conv_bf16.h"
#include "kernels/winograd.h"
#include "support/reference.h"
#include "unit/panels.h"

enum { CONV_THREADS_MAX = 3, CONV_TAPS_MAX = 64 };

/* in_c, out_c, map, kernel, stride, padding, samples */
typedef struct conv_shape {
	int in_c, out_c, in_h, in_w, kernel_h, kernel_w, stride, padding;
	int64_t n;
} conv_shape;

/* One convolution with its operands, in both layouts. */
typedef struct conv_kit {
	char name[160];
	ls_arena arena;
	ls_reference_window window;
	ls_conv_geometry geometry;
	int16_t slot[CONV_TAPS_MAX];
	ls_param weight;
	ls_param_table params; /* of that one row */
	ls_conv_algorithm algorithm;
	const ls_bf16_kernels *bf16;         /* NULL: products in fp32 */
	ls_conv_plan plan[CONV_THREADS_MAX]; /* as teams of 1, 2, ... would make it */
	panels_shape in, out;
	float *x, *dy, *w, *bias;     /* dense */
	float *px, *pdy, *pw, *pbias; /* panels; pw: the store, px: the images where they are gathered */
} conv_kit;

/* What one run makes. */
typedef struct conv_made {
	float *patches, *turned;
	float *y, *dx, *dw; /* panels, panels, store */
	float *mean, *m2;   /* (blocks, tiles, panel) */
} conv_made;

/* The layout that the graph gives a convolution's weights. */
static inline void conv_lay_out(conv_kit *k)
{
	const ls_conv_geometry *g = &k->geometry;
	int taps = g->kernel_h * g->kernel_w;

	assert_true(taps <= CONV_TAPS_MAX);
	k->weight = (ls_param){ .name = "w", .rank = 3, .shape = { g->out_c, g->in_c, taps } };
	k->weight.layout = (ls_weight_layout){ .out = g->out_c,
					       .in = g->in_c,
					       .taps = taps,
					       .out_panel = ls_panel_width(g->out_c),
					       .in_panel = g->gathered ? g->in_c * taps : ls_panel_width(g->in_c),
					       .gathered = g->gathered,
					       .reachable_taps = taps };
	if (!g->gathered) {
		k->weight.layout.reachable_taps = ls_conv_slots(g, k->slot);
		k->weight.layout.slot = k->slot;
	}
	k->params = (ls_param_table){ .rows = &k->weight, .count = 1 };
	ls_params_lay_out(&k->params, 0);
}

/* Whole numbers in [-3, 3] or normal ones. */
static inline float *conv_operand(int64_t count, uint64_t stream, int whole)
{
	float *p = check_random(count, stream);
	for (int64_t i = 0; whole && i < count; i++)
		p[i] = (float)lrintf(fminf(fmaxf(1.5f * p[i], -3), 3));
	return p;
}

static inline void conv_fill_operands(conv_kit *k, int whole)
{
	const ls_conv_geometry *g = &k->geometry;
	int64_t padded = (int64_t)ls_panel_blocks(g->out_c) * ls_panel_width(g->out_c);

	k->x = conv_operand(panels_dense(&k->in), 1, whole);
	k->dy = conv_operand(panels_dense(&k->out), 2, whole);
	k->w = conv_operand((int64_t)ls_param_elements(&k->weight), 3, whole);
	k->bias = conv_operand(g->out_c, 4, whole);
	k->px = g->gathered ? check_copy(k->x, panels_dense(&k->in)) : check_floats(panels_floats(&k->in));
	k->pdy = check_floats(panels_floats(&k->out));
	k->pw = check_floats((int64_t)k->params.total);
	k->pbias = check_floats(padded);
	if (!g->gathered)
		panels_pack(&k->in, k->x, k->px);
	panels_pack(&k->out, k->dy, k->pdy);
	memset(k->pw, 0, k->params.total * sizeof(float));
	ls_param_import(&k->weight, LS_STORE_WHOLE, k->w, k->pw);
	for (int64_t c = 0; c < padded; c++)
		k->pbias[c] = c < g->out_c ? k->bias[c] : 0;
}

static inline void conv_kit_init(conv_kit *k, const conv_shape *s, ls_conv_algorithm algorithm,
				 const ls_bf16_kernels *bf16, int whole)
{
	*k = (conv_kit){ .algorithm = algorithm, .bf16 = bf16 };
	k->window = (ls_reference_window){ .n = (int)s->n,
					   .in_c = s->in_c,
					   .out_c = s->out_c,
					   .in_h = s->in_h,
					   .in_w = s->in_w,
					   .kernel_h = s->kernel_h,
					   .kernel_w = s->kernel_w,
					   .stride = s->stride,
					   .padding = s->padding };
	ls_reference_window_finish(&k->window);
	k->geometry = (ls_conv_geometry){ .in_c = s->in_c,
					  .out_c = s->out_c,
					  .in_h = s->in_h,
					  .in_w = s->in_w,
					  .out_h = k->window.out_h,
					  .out_w = k->window.out_w,
					  .kernel_h = s->kernel_h,
					  .kernel_w = s->kernel_w,
					  .stride = s->stride,
					  .padding = s->padding,
					  .gathered = s->in_c < 16 };
	snprintf(k->name, sizeof(k->name), "%d -> %d channels, %dx%d, kernel %dx%d, stride %d, padding %d, n %lld",
		 s->in_c, s->out_c, s->in_h, s->in_w, s->kernel_h, s->kernel_w, s->stride, s->padding, (long long)s->n);
	k->in = (panels_shape){ s->n, s->in_c, s->in_h, s->in_w };
	k->out = (panels_shape){ s->n, s->out_c, k->window.out_h, k->window.out_w };
	conv_lay_out(k);
	conv_fill_operands(k, whole);
	for (int i = 0; i < CONV_THREADS_MAX; i++)
		assert_int_equal(ls_conv_plan_make(&k->plan[i], &k->arena, &k->geometry, algorithm, s->n,
						   &k->weight.layout, i + 1),
				 LS_OK);
}

static inline void conv_kit_release(conv_kit *k)
{
	float *all[] = { k->x, k->dy, k->w, k->bias, k->px, k->pdy, k->pw, k->pbias };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	ls_arena_release(&k->arena);
}

/* Room for the results, all of it NaN; to accumulate, filled with whole numbers first. */
static inline void conv_made_init(conv_made *m, const conv_kit *k, int accumulate)
{
	const ls_conv_walk *f = &k->plan[0].forward;
	int64_t moments = f->tiles * f->blocks * f->panel, row = ls_conv_patch_floats(&k->geometry);

	*m = (conv_made){ 0 };
	m->patches = check_floats(k->geometry.gathered ? k->out.h * k->out.w * k->out.n * row : 0);
	m->turned =
		check_floats(k->bf16 ? (int64_t)ls_conv_bf16_scratch_floats(&k->geometry, k->out.n, &k->weight.layout,
									    CONV_THREADS_MAX)
			     : k->plan[0].winograd ? (int64_t)ls_winograd_scratch_floats(&k->geometry, CONV_THREADS_MAX)
						   : (int64_t)k->weight.count);
	m->y = check_floats(panels_floats(&k->out));
	m->dx = check_floats(k->geometry.gathered ? 0 : panels_floats(&k->in));
	m->dw = check_floats((int64_t)k->weight.count);
	m->mean = check_floats(moments);
	m->m2 = check_floats(moments);
	for (int64_t i = 0; accumulate && !k->geometry.gathered && i < panels_floats(&k->in); i++)
		m->dx[i] = 0;
	for (int64_t i = 0; accumulate && !k->geometry.gathered && i < panels_dense(&k->in); i++) {
		int p = (int)(i % (k->in.h * k->in.w)), c = (int)(i / (k->in.h * k->in.w) % k->in.c);
		m->dx[panels_at(&k->in, i / ((int64_t)k->in.h * k->in.w * k->in.c), c, p)] = (float)(i % 5);
	}
	for (size_t i = 0; accumulate && i < k->weight.count; i++)
		m->dw[i] = 2;
}

static inline void conv_made_release(conv_made *m)
{
	float *all[] = { m->patches, m->turned, m->y, m->dx, m->dw, m->mean, m->m2 };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

typedef struct conv_job {
	const conv_kit *kit;
	const conv_made *made;
	int accumulate, epilogue;
} conv_job;

static inline void conv_work_in_bf16(const conv_job *j, const float *x, const ls_conv_epilogue *epilogue,
				     ls_member member)
{
	const conv_kit *k = j->kit;
	const conv_made *m = j->made;
	const ls_conv_plan *plan = &k->plan[member.size - 1];

	ls_conv_bf16_forward(k->bf16, plan, x, k->pw, epilogue, m->y, m->turned, member);
	ls_team_barrier(member);
	if (!k->geometry.gathered) {
		ls_conv_bf16_backward_data(k->bf16, plan, k->pdy, k->pw, j->accumulate, m->dx, m->turned, member);
		ls_team_barrier(member);
	}
	ls_conv_bf16_backward_weights(k->bf16, plan, x, k->pdy, j->accumulate, m->dw, m->turned, member);
}

static inline void conv_work(void *context, ls_member member)
{
	const conv_job *j = context;
	const conv_kit *k = j->kit;
	const conv_made *m = j->made;
	ls_conv_epilogue nothing = { 0 };
	ls_conv_epilogue all = { .bias = k->pbias, .relu = 1, .mean = m->mean, .m2 = m->m2 };
	const ls_conv_plan *plan = &k->plan[member.size - 1];
	const float *x = k->px;

	if (k->geometry.gathered) {
		ls_conv_gather(&k->geometry, k->out.n, k->px, m->patches, member);
		ls_team_barrier(member);
		x = m->patches;
	}
	if (k->bf16) {
		conv_work_in_bf16(j, x, j->epilogue ? &all : &nothing, member);
		return;
	}
	if (plan->winograd) {
		ls_winograd_forward(plan, x, k->pw, j->epilogue ? &all : &nothing, m->turned, m->y, member);
		ls_team_barrier(member);
		ls_winograd_backward_data(plan, k->pdy, k->pw, m->turned, j->accumulate, m->dx, member);
		ls_team_barrier(member);
		ls_winograd_backward_weights(plan, x, k->pdy, m->turned, j->accumulate, m->dw, member);
		return;
	}
	ls_conv_forward(plan, x, k->pw, j->epilogue ? &all : &nothing, m->y, member);
	ls_team_barrier(member);
	if (!k->geometry.gathered) {
		ls_conv_backward_data(plan, k->pdy, k->pw, m->turned, j->accumulate, m->dx, member);
		ls_team_barrier(member);
	}
	ls_conv_backward_weights(plan, x, k->pdy, j->accumulate, m->dw, member);
}

static inline void conv_run(const conv_kit *k, conv_made *m, int threads, int accumulate, int epilogue)
{
	ls_team *team = NULL;
	conv_job j = { k, m, accumulate, epilogue };
	assert_int_equal(ls_team_new(&team, threads), LS_OK);
	conv_made_init(m, k, accumulate);
	ls_team_run(team, conv_work, &j);
	ls_team_free(team);
}

#endif
