/*
 * Convolution on panels against the reference: gather, forward with its epilogue, backward-data, backward-weights; directly,
 * and by Winograd's algorithm.
 *
 * Operands are small integers, so that every sum is exact in whatever order it is taken and the comparison needs no
 * tolerance. Another pass with ordinary numbers compares the bits that teams of 1, 2 and 3 threads give.
 */
#include "unit/kernels/simd_check.h"

#include <stdio.h>

#include "kernels/conv_bf16.h"
#include "kernels/winograd.h"
#include "support/reference.h"
#include "unit/panels.h"
#include "unit/test_main.h"

enum { THREADS_MAX = 3, TAPS_MAX = 64 };

static const ls_bf16_kernels *bf16; /* the tests once more, with products in bf16 or bf16-amx; NULL: in fp32 */

/* in_c, out_c, map, kernel, stride, padding, samples */
typedef struct shape {
	int in_c, out_c, in_h, in_w, kernel_h, kernel_w, stride, padding;
	int64_t n;
} shape;

static const shape table[] = {
	/* gathered: the first layer */
	{ 1, 64, 28, 28, 7, 7, 2, 3, 7 },
	{ 1, 32, 28, 28, 3, 3, 1, 1, 2 },
	{ 3, 64, 9, 9, 7, 7, 2, 3, 33 },
	{ 3, 16, 5, 3, 3, 2, 1, 1, 65 },
	{ 3, 70, 7, 7, 5, 5, 3, 2, 1 },
	{ 1, 20, 5, 3, 5, 3, 1, 0, 128 },
	{ 1, 16, 4, 4, 1, 1, 1, 3, 3 },
	{ 1, 16, 4, 4, 2, 2, 1, 3, 3 },
	{ 3, 16, 4, 4, 2, 1, 2, 3, 5 },
	{ 1, 16, 12, 4, 16, 1, 3, 6, 3 },
	{ 15, 33, 4, 4, 3, 3, 1, 1, 64 },
	/* a linear layer on images: the kernel covers the input */
	{ 1, 130, 7, 7, 7, 7, 1, 0, 65 },
	/* ResNet's shapes on MNIST's maps, narrow enough for the reference */
	{ 64, 64, 7, 7, 3, 3, 1, 1, 7 },
	{ 64, 130, 4, 4, 3, 3, 2, 1, 33 },
	{ 130, 70, 4, 4, 1, 1, 2, 0, 64 },
	{ 70, 130, 2, 2, 3, 3, 1, 1, 65 },
	{ 64, 64, 1, 1, 3, 3, 1, 1, 300 },
	{ 130, 64, 1, 1, 3, 3, 1, 1, 128 },
	{ 32, 32, 2, 2, 3, 3, 2, 1, 300 },
	{ 64, 70, 1, 1, 5, 5, 1, 2, 33 },
	/* pointwise: one long row of positions */
	{ 64, 70, 7, 7, 1, 1, 1, 0, 2 },
	{ 20, 16, 5, 3, 1, 1, 1, 0, 300 },
	{ 70, 20, 5, 3, 1, 1, 1, 0, 65 },
	{ 32, 64, 7, 7, 1, 1, 3, 0, 33 },
	/* odd kernels, strides and paddings */
	{ 16, 16, 5, 3, 2, 3, 1, 0, 7 },
	{ 16, 20, 7, 7, 5, 1, 2, 2, 33 },
	{ 20, 32, 5, 3, 1, 3, 1, 1, 64 },
	{ 20, 16, 7, 7, 7, 7, 1, 3, 2 },
	{ 32, 16, 7, 7, 2, 2, 2, 0, 65 },
	{ 16, 32, 5, 3, 3, 3, 3, 3, 128 },
	{ 16, 16, 4, 4, 1, 1, 1, 3, 7 },
	{ 16, 70, 2, 2, 1, 1, 2, 2, 65 },
	{ 20, 20, 4, 4, 3, 3, 1, 1, 300 },
	{ 16, 16, 7, 7, 3, 3, 1, 1, 1 },
	/* linear layers on maps */
	{ 64, 130, 4, 4, 4, 4, 1, 0, 33 },
	{ 20, 10, 5, 3, 5, 3, 1, 0, 65 },
	{ 130, 10, 1, 1, 1, 1, 1, 0, 128 },
	/* more positions than sixteen bits count */
	{ 1, 16, 190, 190, 3, 3, 1, 1, 1 },
	{ 16, 16, 190, 190, 1, 1, 1, 0, 1 },
};
enum { ROWS = sizeof(table) / sizeof(table[0]) };

/* What Winograd's algorithm can compute: even and odd maps, all paddings, narrow panels, padded channels, short and cut
 * micro-batches. */
static const shape winograd_table[] = {
	{ 64, 64, 7, 7, 3, 3, 1, 1, 7 },   { 64, 64, 4, 4, 3, 3, 1, 1, 65 },  { 20, 20, 4, 4, 3, 3, 1, 1, 300 },
	{ 70, 130, 2, 2, 3, 3, 1, 1, 65 }, { 16, 16, 7, 7, 3, 3, 1, 1, 1 },   { 130, 70, 3, 3, 3, 3, 1, 1, 33 },
	{ 32, 64, 14, 14, 3, 3, 1, 1, 5 }, { 16, 40, 28, 9, 3, 3, 1, 1, 2 },  { 64, 16, 5, 8, 3, 3, 1, 0, 64 },
	{ 20, 33, 4, 5, 3, 3, 1, 0, 31 },  { 33, 16, 2, 3, 3, 3, 1, 2, 17 },  { 16, 16, 6, 5, 3, 3, 1, 2, 128 },
	{ 200, 140, 5, 6, 3, 3, 1, 1, 3 }, { 16, 16, 2, 17, 3, 3, 1, 1, 63 },
};
enum { WINOGRAD_ROWS = sizeof(winograd_table) / sizeof(winograd_table[0]) };

/* One convolution with its operands, in both layouts. */
typedef struct kit {
	char name[160];
	ls_arena arena;
	ls_reference_window window;
	ls_conv_geometry geometry;
	int16_t slot[TAPS_MAX];
	ls_param weight;
	ls_param_table params; /* of that one row */
	ls_conv_algorithm algorithm;
	ls_conv_plan plan[THREADS_MAX]; /* as teams of 1, 2, ... would make it */
	panels_shape in, out;
	float *x, *dy, *w, *bias;     /* dense */
	float *px, *pdy, *pw, *pbias; /* panels; pw: the store, px: the images where they are gathered */
} kit;

/* What one run makes. */
typedef struct made {
	float *patches, *turned;
	float *y, *dx, *dw; /* panels, panels, store */
	float *mean, *m2;   /* (blocks, tiles, panel) */
} made;

static int64_t terms(const shape *s)
{
	return (int64_t)s->in_c * s->out_c * s->in_h * s->in_w * s->kernel_h * s->kernel_w * s->n /
	       (s->stride * s->stride);
}

/* The layout that the graph gives a convolution's weights. */
static void lay_out(kit *k)
{
	const ls_conv_geometry *g = &k->geometry;
	int taps = g->kernel_h * g->kernel_w;

	assert_true(taps <= TAPS_MAX);
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
static float *operand(int64_t count, uint64_t stream, int whole)
{
	float *p = check_random(count, stream);
	for (int64_t i = 0; whole && i < count; i++)
		p[i] = (float)lrintf(fminf(fmaxf(1.5f * p[i], -3), 3));
	return p;
}

static void fill_operands(kit *k, int whole)
{
	const ls_conv_geometry *g = &k->geometry;
	int64_t padded = (int64_t)ls_panel_blocks(g->out_c) * ls_panel_width(g->out_c);

	k->x = operand(panels_dense(&k->in), 1, whole);
	k->dy = operand(panels_dense(&k->out), 2, whole);
	k->w = operand((int64_t)ls_param_elements(&k->weight), 3, whole);
	k->bias = operand(g->out_c, 4, whole);
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

static void kit_init(kit *k, const shape *s, ls_conv_algorithm algorithm, int whole)
{
	*k = (kit){ .algorithm = algorithm };
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
	lay_out(k);
	fill_operands(k, whole);
	for (int i = 0; i < THREADS_MAX; i++)
		assert_int_equal(ls_conv_plan_make(&k->plan[i], &k->arena, &k->geometry, algorithm, s->n,
						   &k->weight.layout, i + 1),
				 LS_OK);
}

static void kit_release(kit *k)
{
	float *all[] = { k->x, k->dy, k->w, k->bias, k->px, k->pdy, k->pw, k->pbias };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	ls_arena_release(&k->arena);
}

/* Room for the results, all of it NaN; to accumulate, filled with whole numbers first. */
static void made_init(made *m, const kit *k, int accumulate)
{
	const ls_conv_walk *f = &k->plan[0].forward;
	int64_t moments = f->tiles * f->blocks * f->panel, row = ls_conv_patch_floats(&k->geometry);

	*m = (made){ 0 };
	m->patches = check_floats(k->geometry.gathered ? k->out.h * k->out.w * k->out.n * row : 0);
	m->turned = check_floats(
		bf16 ? (int64_t)ls_conv_bf16_scratch_floats(&k->geometry, k->out.n, &k->weight.layout, THREADS_MAX)
		: k->plan[0].winograd ? (int64_t)ls_winograd_scratch_floats(&k->geometry, THREADS_MAX)
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

static void made_release(made *m)
{
	float *all[] = { m->patches, m->turned, m->y, m->dx, m->dw, m->mean, m->m2 };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

typedef struct job {
	const kit *kit;
	const made *made;
	int accumulate, epilogue;
} job;

static void work_in_bf16(const job *j, const float *x, const ls_conv_epilogue *epilogue, ls_member member)
{
	const kit *k = j->kit;
	const made *m = j->made;
	const ls_conv_plan *plan = &k->plan[member.size - 1];

	ls_conv_bf16_forward(bf16, plan, x, k->pw, epilogue, m->y, m->turned, member);
	ls_team_barrier(member);
	if (!k->geometry.gathered) {
		ls_conv_bf16_backward_data(bf16, plan, k->pdy, k->pw, j->accumulate, m->dx, m->turned, member);
		ls_team_barrier(member);
	}
	ls_conv_bf16_backward_weights(bf16, plan, x, k->pdy, j->accumulate, m->dw, m->turned, member);
}

static void work(void *context, ls_member member)
{
	const job *j = context;
	const kit *k = j->kit;
	const made *m = j->made;
	ls_conv_epilogue nothing = { 0 };
	ls_conv_epilogue all = { .bias = k->pbias, .relu = 1, .mean = m->mean, .m2 = m->m2 };
	const ls_conv_plan *plan = &k->plan[member.size - 1];
	const float *x = k->px;

	if (k->geometry.gathered) {
		ls_conv_gather(&k->geometry, k->out.n, k->px, m->patches, member);
		ls_team_barrier(member);
		x = m->patches;
	}
	if (bf16) {
		work_in_bf16(j, x, j->epilogue ? &all : &nothing, member);
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

static void run(const kit *k, made *m, int threads, int accumulate, int epilogue)
{
	ls_team *team = NULL;
	job j = { k, m, accumulate, epilogue };
	assert_int_equal(ls_team_new(&team, threads), LS_OK);
	made_init(m, k, accumulate);
	ls_team_run(team, work, &j);
	ls_team_free(team);
}

static void check_panels(const kit *k, const char *what, const panels_shape *s, const float *panels, const float *dense)
{
	char name[200];
	float *got = check_floats(panels_dense(s));
	snprintf(name, sizeof(name), "%s of %s", what, k->name);
	panels_unpack(s, panels, got);
	check_same(name, got, dense, panels_dense(s));
	if (panels_stain(s, panels) >= 0)
		fail_msg("%s: a padded channel is not zero", name);
	free(got);
}

static void check_weights(const kit *k, const made *m, const float *expected, float before)
{
	char name[200];
	size_t count = ls_param_elements(&k->weight);
	float *got = check_floats((int64_t)count), *reachable = check_floats((int64_t)count);
	float *marks = check_floats((int64_t)k->weight.count);

	/* What was there before the sum is found where a weight is reachable. */
	for (size_t i = 0; i < k->weight.count; i++)
		marks[i] = before;
	ls_param_export(&k->weight, LS_STORE_REACHABLE, marks, reachable);
	ls_param_export(&k->weight, LS_STORE_REACHABLE, m->dw, got);
	for (size_t i = 0; i < count; i++)
		reachable[i] += expected[i];
	snprintf(name, sizeof(name), "weight gradient of %s", k->name);
	check_same(name, got, reachable, (int64_t)count);
	free(got);
	free(reachable);
	free(marks);
}

/* Chan's formula over the tiles must give the moments of the whole channel. */
static void check_moments(const kit *k, const made *m, const float *y)
{
	const ls_conv_walk *f = &k->plan[0].forward;
	const int64_t positions = (int64_t)k->out.h * k->out.w, rows = positions * k->out.n;

	for (int c = 0; c < k->out.c; c++) {
		double count = 0, mean = 0, m2 = 0, sum = 0, squares = 0;
		for (int64_t t = 0; t < f->tiles; t++) {
			int64_t at = (c / f->panel * f->tiles + t) * f->panel + c % f->panel;
			double r = (double)ls_conv_tile_rows(&k->plan[0], t), delta = m->mean[at] - mean;
			mean += delta * r / (count + r);
			m2 += m->m2[at] + delta * delta * count * r / (count + r);
			count += r;
		}
		for (int64_t i = 0; i < k->out.n; i++)
			for (int64_t p = 0; p < positions; p++) {
				double v = y[(i * k->out.c + c) * positions + p];
				sum += v;
				squares += v * v;
			}
		double variance = squares / (double)rows - sum / (double)rows * (sum / (double)rows);
		assert_int_equal((int64_t)count, rows);
		if (fabs(mean - sum / (double)rows) > 1e-5 * (1 + fabs(mean)) ||
		    fabs(m2 / count - variance) > 1e-4 * (1 + variance))
			fail_msg("moments of %s: channel %d has mean %g, variance %g; expected %g, %g", k->name, c,
				 mean, m2 / count, sum / (double)rows, variance);
	}
}

/* The reference's answers, dense. */
typedef struct expected {
	float *y, *act, *dx, *dw;
} expected;

static expected answers(const kit *k)
{
	int64_t count = panels_dense(&k->out);
	expected e = { check_floats(count), check_floats(count), check_floats(panels_dense(&k->in)),
		       check_floats((int64_t)ls_param_elements(&k->weight)) };
	ls_reference_conv(&k->window, k->x, k->w, NULL, e.y);
	for (int64_t i = 0; i < count; i++)
		e.act[i] = fmaxf(e.y[i] + k->bias[i / (k->out.h * k->out.w) % k->out.c], 0);
	if (!k->geometry.gathered)
		ls_reference_conv_backward_data(&k->window, k->dy, k->w, e.dx);
	ls_reference_conv_backward_weights(&k->window, k->x, k->dy, e.dw, NULL);
	return e;
}

/* Minus zero is as good as zero. */
static void wash(float *p, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		p[i] += 0.0f;
}

static void check_results(const kit *k, made *m, const expected *e, int accumulate, int epilogue)
{
	float *dx = check_copy(e->dx, panels_dense(&k->in));

	wash(m->y, panels_floats(&k->out));
	check_panels(k, epilogue ? "biased and rectified output" : "output", &k->out, m->y, epilogue ? e->act : e->y);
	if (epilogue)
		check_moments(k, m, e->act);
	for (int64_t i = 0; accumulate && i < panels_dense(&k->in); i++)
		dx[i] += (float)(i % 5);
	if (!k->geometry.gathered) {
		wash(m->dx, panels_floats(&k->in));
		check_panels(k, "input gradient", &k->in, m->dx, dx);
	}
	wash(m->dw, (int64_t)k->weight.count);
	check_weights(k, m, e->dw, accumulate ? 2 : 0);
	free(dx);
}

static void check_shape(const shape *s, ls_conv_algorithm algorithm)
{
	kit k;
	kit_init(&k, s, algorithm, 1);
	assert_int_equal(k.plan[0].winograd != NULL, algorithm == LS_CONV_WINOGRAD);
	expected e = answers(&k);
	float *answer[] = { e.y, e.act, e.dx, e.dw };
	int64_t sizes[] = { panels_dense(&k.out), panels_dense(&k.out), k.geometry.gathered ? 0 : panels_dense(&k.in),
			    (int64_t)ls_param_elements(&k.weight) };

	for (int i = 0; i < 4; i++)
		wash(answer[i], sizes[i]);
	for (int round = 0; round < 2; round++) {
		made m;
		run(&k, &m, 1, round, round);
		check_results(&k, &m, &e, round, round);
		made_release(&m);
	}
	for (int i = 0; i < 4; i++)
		free(answer[i]);
	kit_release(&k);
}

static void check_threads(const shape *s, ls_conv_algorithm algorithm)
{
	kit k;
	made one, more;
	kit_init(&k, s, algorithm, 0);
	run(&k, &one, 1, 0, 1);
	for (int threads = 2; threads <= THREADS_MAX; threads++) {
		int64_t moments = k.plan[0].forward.tiles * k.plan[0].forward.blocks * k.plan[0].forward.panel;
		run(&k, &more, threads, 0, 1);
		check_same(k.name, more.y, one.y, panels_floats(&k.out));
		check_same(k.name, more.mean, one.mean, moments);
		check_same(k.name, more.m2, one.m2, moments);
		check_same(k.name, more.dx, one.dx, k.geometry.gathered ? 0 : panels_floats(&k.in));
		check_same(k.name, more.dw, one.dw, (int64_t)k.weight.count);
		made_release(&more);
	}
	made_release(&one);
	kit_release(&k);
}

static void test_table(void **state)
{
	(void)state;
	for (int i = 0; i < ROWS; i++)
		check_shape(&table[i], LS_CONV_DIRECT);
}

/* Filters of whole numbers have quarters when transformed: sums are still exact. */
static void test_winograd(void **state)
{
	(void)state;
	for (int i = 0; i < WINOGRAD_ROWS; i++)
		check_shape(&winograd_table[i], LS_CONV_WINOGRAD);
}

/* Draw shapes from the values that make trouble. */
static int drawn(shape *s, uint64_t draw)
{
	static const int channels[] = { 1, 3, 16, 20, 32, 64, 70, 130 }, kernels[] = { 1, 2, 3, 5, 7 };
	static const int maps[][2] = { { 1, 1 }, { 2, 2 }, { 4, 4 }, { 7, 7 }, { 5, 3 } };
	static const int64_t samples[] = { 1, 2, 7, 33, 64, 65, 128, 300 };
	uint32_t w[12];
	for (int i = 0; i < 3; i++)
		ls_rng_words(ls_rng_make(CHECK_SEED, LS_RNG_TEST, 99), draw, (uint64_t)i, w + 4 * i);
	const int *map = maps[ls_rng_below(w[0], 5)];
	*s = (shape){ .in_c = channels[ls_rng_below(w[1], 8)],
		      .out_c = channels[ls_rng_below(w[2], 8)],
		      .in_h = map[0],
		      .in_w = map[1],
		      .kernel_h = kernels[ls_rng_below(w[3], 5)],
		      .stride = 1 + (int)ls_rng_below(w[4], 3),
		      .padding = (int)ls_rng_below(w[5], 4),
		      .n = samples[ls_rng_below(w[6], 8)] };
	s->kernel_w = w[7] & 1 ? s->kernel_h : kernels[ls_rng_below(w[8], 5)];
	return s->in_h + 2 * s->padding >= s->kernel_h && s->in_w + 2 * s->padding >= s->kernel_w && terms(s) < 600000;
}

static void test_drawn(void **state)
{
	int checked = 0;
	(void)state;
	for (uint64_t draw = 0; checked < 120; draw++) {
		shape s;
		if (!drawn(&s, draw))
			continue;
		check_shape(&s, LS_CONV_DIRECT);
		checked++;
	}
}

static void test_threads(void **state)
{
	(void)state;
	for (int i = 0; i < ROWS; i++)
		check_threads(&table[i], LS_CONV_DIRECT);
	for (int i = 0; i < WINOGRAD_ROWS && !bf16; i++)
		check_threads(&winograd_table[i], LS_CONV_WINOGRAD);
}

/* ---- the error of Winograd's algorithm, against exact convolution ---- */

/* The largest error of `got` beside exact values, in units of the largest of them. */
static double error_of(const float *got, const double *exact, int64_t count)
{
	double error = 0, largest = 0;
	for (int64_t i = 0; i < count; i++) {
		error = fmax(error, fabs((double)got[i] - exact[i]));
		largest = fmax(largest, fabs(exact[i]));
	}
	return error / largest;
}

static const shape error_table[] = {
	{ 64, 64, 14, 14, 3, 3, 1, 1, 4 },
	{ 256, 64, 7, 7, 3, 3, 1, 1, 8 },
	{ 512, 16, 6, 6, 3, 3, 1, 1, 4 },
};

/* y, dx and dw in double: what they would be without rounding, for the size of our errors. */
static void exact_conv(const kit *k, double *y, double *dx, double *dw)
{
	const ls_reference_window *c = &k->window;

	memset(y, 0, sizeof(*y) * (size_t)panels_dense(&k->out));
	memset(dx, 0, sizeof(*dx) * (size_t)panels_dense(&k->in));
	memset(dw, 0, sizeof(*dw) * ls_param_elements(&k->weight));
	for (int64_t i = 0; i < c->n; i++)
		for (int64_t o = 0; o < c->out_c; o++)
			for (int64_t p = 0; p < (int64_t)c->out_h * c->out_w; p++)
				for (int64_t t = 0; t < 9 * (int64_t)c->in_c; t++) {
					int64_t in = t / 9, iy = p / c->out_w - c->padding + t % 9 / 3;
					int64_t ix = p % c->out_w - c->padding + t % 3;
					if (iy < 0 || iy >= c->in_h || ix < 0 || ix >= c->in_w)
						continue;
					int64_t from = ((i * c->in_c + in) * c->in_h + iy) * c->in_w + ix;
					int64_t to = (i * c->out_c + o) * c->out_h * c->out_w + p;
					int64_t weight = (o * c->in_c + in) * 9 + t % 9;
					y[to] += (double)k->x[from] * k->w[weight];
					dx[from] += (double)k->dy[to] * k->w[weight];
					dw[weight] += (double)k->dy[to] * k->x[from];
				}
}

/* Errors of y, dx, dw of a shape with ordinary numbers. */
static void errors_of(const shape *s, ls_conv_algorithm algorithm, double error[3])
{
	kit k;
	made m;
	kit_init(&k, s, algorithm, 0);
	int64_t in = panels_dense(&k.in), out = panels_dense(&k.out), weights = (int64_t)ls_param_elements(&k.weight);
	double *exact = calloc((size_t)(in + out + weights), sizeof(*exact));
	float *y = check_floats(out), *dx = check_floats(in), *dw = check_floats(weights);

	assert_non_null(exact);
	exact_conv(&k, exact, exact + out, exact + out + in);
	run(&k, &m, 1, 0, 0);
	panels_unpack(&k.out, m.y, y);
	panels_unpack(&k.in, m.dx, dx);
	ls_param_export(&k.weight, LS_STORE_REACHABLE, m.dw, dw);
	error[0] = error_of(y, exact, out);
	error[1] = error_of(dx, exact + out, in);
	error[2] = error_of(dw, exact + out + in, weights);
	made_release(&m);
	kit_release(&k);
	free(exact);
	free(y);
	free(dx);
	free(dw);
}

/* No more than three times the error of direct convolution, and far below what training notices. */
static void test_winograd_error(void **state)
{
	static const char *const what[] = { "output", "input gradient", "weight gradient" };
	(void)state;
	for (size_t i = 0; i < sizeof(error_table) / sizeof(error_table[0]); i++) {
		double direct[3], winograd[3];
		errors_of(&error_table[i], LS_CONV_DIRECT, direct);
		errors_of(&error_table[i], LS_CONV_WINOGRAD, winograd);
		for (int d = 0; d < 3; d++) {
			print_message("%d channels, %s: %.2g of the largest, directly %.2g\n", error_table[i].in_c,
				      what[d], winograd[d], direct[d]);
			if (winograd[d] > 3 * direct[d] || winograd[d] > 2e-6)
				fail_msg("%s of %d channels: error %g of the largest value, directly %g", what[d],
					 error_table[i].in_c, winograd[d], direct[d]);
		}
	}
}

/* The choice is the shape's alone. */
static void test_algorithm(void **state)
{
	ls_conv_geometry g = { .in_c = 64,
			       .out_c = 64,
			       .in_h = 14,
			       .in_w = 14,
			       .out_h = 14,
			       .out_w = 14,
			       .kernel_h = 3,
			       .kernel_w = 3,
			       .stride = 1,
			       .padding = 1 };
	ls_conv_geometry small = g, wide = g, gathered = g;
	(void)state;

	small.in_h = small.in_w = small.out_h = small.out_w = 2;
	wide.kernel_w = 5;
	gathered.gathered = 1;
	assert_true(ls_conv_is_winograd(&g, LS_CONV_AUTO));
	assert_true(ls_conv_is_winograd(&g, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&g, LS_CONV_DIRECT));
	assert_false(ls_conv_is_winograd(&small, LS_CONV_AUTO));
	assert_true(ls_conv_is_winograd(&small, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&wide, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&gathered, LS_CONV_WINOGRAD));
	small.in_h = small.in_w = small.out_h = small.out_w = 1; /* only its middle tap meets the map */
	assert_false(ls_conv_is_winograd(&small, LS_CONV_WINOGRAD));
	g.stride = 2;
	assert_false(ls_conv_is_winograd(&g, LS_CONV_WINOGRAD));
}

/* A row of patches: depth index = tap * channels + channel, zeros outside the image. */
static void test_gather(void **state)
{
	(void)state;
	for (int row = 0; row < ROWS; row++) {
		kit k;
		made m;
		if (table[row].in_c >= 16)
			continue;
		kit_init(&k, &table[row], LS_CONV_DIRECT, 0);
		run(&k, &m, 2, 0, 0);
		const ls_conv_geometry *g = &k.geometry;
		int64_t floats = ls_conv_patch_floats(g), depth = (int64_t)g->in_c * g->kernel_h * g->kernel_w;
		for (int64_t unit = 0; unit < (int64_t)g->out_h * g->out_w * k.out.n; unit++)
			for (int64_t d = 0; d < depth; d++) {
				int64_t i = unit % k.out.n, p = unit / k.out.n, tap = d / g->in_c, c = d % g->in_c;
				int64_t y = p / g->out_w * g->stride - g->padding + tap / g->kernel_w;
				int64_t x = p % g->out_w * g->stride - g->padding + tap % g->kernel_w;
				int inside = y >= 0 && y < g->in_h && x >= 0 && x < g->in_w;
				float want = inside ? k.x[((i * g->in_c + c) * g->in_h + y) * g->in_w + x] : 0;
				if (m.patches[unit * floats + d] != want)
					fail_msg("patches of %s: row %lld, depth %lld is %g, expected %g", k.name,
						 (long long)unit, (long long)d, (double)m.patches[unit * floats + d],
						 (double)want);
			}
		made_release(&m);
		kit_release(&k);
	}
}

/* Whole numbers, which bf16 holds: products are exact, so the answers are those of the reference. */
static void test_bf16(void **state)
{
	for (int amx = 0; amx < 2; amx++) {
		bf16 = amx ? ls_bf16_amx_get() : ls_bf16_get();
		test_table(state);
		test_drawn(state);
		test_threads(state);
	}
	bf16 = NULL;
}

static float rounded(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* One element of the formula: pairs in order, of bf16 the second one first; of bf16-amx in steps of 16 pairs of a part, each with a
 * sum of the first and one of the second elements. */
typedef struct chain {
	float sum, of[2]; /* `of`: of a step */
	int pairs;        /* of a step, so far */
} chain;

static void end_part(chain *c)
{
	c->sum += c->of[0] + c->of[1];
	c->of[0] = c->of[1] = 0;
	c->pairs = 0;
}

static void add_pair(chain *c, const float x[2], const float w[2])
{
	if (bf16->turned && c->pairs == 16)
		end_part(c);
	for (int i = 1; i >= 0; i--) {
		float *to = bf16->turned ? &c->of[i] : &c->sum;
		*to = fmaf(rounded(x[i]), rounded(w[i]), *to);
	}
	c->pairs++;
}

static float output_in_bf16(const kit *k, int64_t i, int o, int py, int px)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
		int y = py * g->stride - g->padding + tap / g->kernel_w,
		    x = px * g->stride - g->padding + tap % g->kernel_w;
		if (y < 0 || y >= g->in_h || x < 0 || x >= g->in_w)
			continue;
		for (int c = 0; c < g->in_c; c += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && c + s < g->in_c; s++) {
				a[s] = k->x[((i * g->in_c + c + s) * g->in_h + y) * g->in_w + x];
				b[s] = k->w[(o * g->in_c + c + s) * g->kernel_h * g->kernel_w + tap];
			}
			add_pair(&sum, a, b);
		}
		end_part(&sum);
	}
	return sum.sum;
}

static float input_in_bf16(const kit *k, int64_t i, int c, int y, int x)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
		int py = y + g->padding - tap / g->kernel_w, px = x + g->padding - tap % g->kernel_w;
		if (py < 0 || py % g->stride || py / g->stride >= g->out_h || px < 0 || px % g->stride ||
		    px / g->stride >= g->out_w)
			continue;
		int p = py / g->stride * g->out_w + px / g->stride;
		for (int o = 0; o < g->out_c; o += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && o + s < g->out_c; s++) {
				a[s] = k->dy[(i * g->out_c + o + s) * g->out_h * g->out_w + p];
				b[s] = k->w[((o + s) * g->in_c + c) * g->kernel_h * g->kernel_w + tap];
			}
			add_pair(&sum, a, b);
		}
		end_part(&sum);
	}
	return sum.sum;
}

/* A part of a weight gradient is what a tap reaches of 256 pairs of samples, at most 64 positions of a row of the map; a
 * 1x1 layer's map is one row, and with a stride each position is a part. */
static int ends_part(const kit *k, int p)
{
	const ls_conv_geometry *g = &k->geometry;
	const int64_t half = (k->out.n + 1) / 2, most = half > 256 ? 1 : 256 / half > 64 ? 64 : 256 / half;
	const int is_pointwise = g->kernel_h * g->kernel_w == 1 && g->padding == 0;
	const int width = is_pointwise ? g->out_h * g->out_w : g->out_w, at = p % width;
	return g->stride > 1 || (at + 1) % (most < width ? most : width) == 0 || at + 1 == width;
}

static float weight_in_bf16(const kit *k, int o, int c, int tap)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int p = 0; p < g->out_h * g->out_w; p++) {
		int y = p / g->out_w * g->stride - g->padding + tap / g->kernel_w,
		    x = p % g->out_w * g->stride - g->padding + tap % g->kernel_w;
		const int is_reached = y >= 0 && y < g->in_h && x >= 0 && x < g->in_w;
		for (int64_t i = 0; is_reached && i < k->out.n; i += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && i + s < k->out.n; s++) {
				a[s] = k->x[(((i + s) * g->in_c + c) * g->in_h + y) * g->in_w + x];
				b[s] = k->dy[((i + s) * g->out_c + o) * g->out_h * g->out_w + p];
			}
			add_pair(&sum, a, b);
		}
		if (ends_part(k, p))
			end_part(&sum);
	}
	return sum.sum;
}

static void check_bits(const kit *k, const made *m)
{
	const int taps = k->geometry.kernel_h * k->geometry.kernel_w, in = k->in.h * k->in.w, out = k->out.h * k->out.w;
	const int64_t outputs = panels_dense(&k->out), inputs = panels_dense(&k->in);
	const int64_t weights = (int64_t)ls_param_elements(&k->weight);
	float *want = check_floats(outputs), *got = check_floats(outputs);
	float *dx = check_floats(inputs), *got_dx = check_floats(inputs);
	float *dw = check_floats(weights), *got_dw = check_floats(weights);

	for (int64_t e = 0; e < outputs; e++)
		want[e] = output_in_bf16(k, e / out / k->out.c, (int)(e / out % k->out.c), (int)(e % out / k->out.w),
					 (int)(e % out % k->out.w));
	for (int64_t e = 0; e < inputs; e++)
		dx[e] = input_in_bf16(k, e / in / k->in.c, (int)(e / in % k->in.c), (int)(e % in / k->in.w),
				      (int)(e % in % k->in.w));
	for (int64_t e = 0; e < weights; e++)
		dw[e] = weight_in_bf16(k, (int)(e / taps / k->in.c), (int)(e / taps % k->in.c), (int)(e % taps));
	panels_unpack(&k->out, m->y, got);
	panels_unpack(&k->in, m->dx, got_dx);
	ls_param_export(&k->weight, LS_STORE_REACHABLE, m->dw, got_dw);
	check_same(k->name, got, want, outputs);
	check_same(k->name, got_dx, dx, inputs);
	check_same(k->name, got_dw, dw, weights);
	float *all[] = { want, got, dx, got_dx, dw, got_dw };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static void check_elements(const shape *s)
{
	kit k;
	made m;
	kit_init(&k, s, LS_CONV_DIRECT, 0);
	run(&k, &m, 2, 0, 0);
	check_bits(&k, &m);
	made_release(&m);
	kit_release(&k);
}

/* The bits of ordinary numbers, element by element: what other processors and kernels must find as well. */
static void test_bf16_bits(void **state)
{
	static const shape shapes[] = { { 70, 40, 5, 4, 3, 3, 1, 1, 7 },   { 64, 64, 7, 7, 3, 3, 2, 1, 4 },
					{ 130, 20, 4, 4, 1, 1, 2, 0, 33 }, { 32, 16, 12, 3, 3, 3, 1, 1, 2 },
					{ 16, 70, 20, 9, 1, 1, 1, 0, 3 },  { 20, 20, 9, 30, 3, 3, 1, 1, 1 },
					{ 20, 36, 6, 11, 3, 3, 1, 1, 64 }, { 70, 16, 9, 9, 1, 1, 1, 0, 16 } };
	(void)state;
	for (size_t n = 0; n < sizeof(shapes) / sizeof(*shapes); n++) {
		bf16 = ls_bf16_get();
		check_elements(&shapes[n]);
		bf16 = ls_bf16_amx_get();
		check_elements(&shapes[n]);
		bf16 = &ls_simd_get()->bf16_amx; /* emulated, whatever the processor has */
		check_elements(&shapes[n]);
	}
	bf16 = NULL;
}

/* Slots number reachable taps first, each side in tap order; what is reachable is what some output position sees. */
static void test_slots(void **state)
{
	static const ls_conv_geometry g1 = {
		.in_h = 1, .in_w = 1, .out_h = 1, .out_w = 1, .kernel_h = 3, .kernel_w = 3, .stride = 1, .padding = 1
	};
	static const ls_conv_geometry g2 = {
		.in_h = 2, .in_w = 2, .out_h = 1, .out_w = 1, .kernel_h = 3, .kernel_w = 3, .stride = 2, .padding = 1
	};
	static const int16_t only_centre[9] = { 1, 2, 3, 4, 0, 5, 6, 7, 8 };
	static const int16_t lower_right[9] = { 4, 5, 6, 7, 0, 1, 8, 2, 3 };
	int16_t slot[9];
	(void)state;

	assert_int_equal(ls_conv_slots(&g1, slot), 1);
	assert_memory_equal(slot, only_centre, sizeof(slot));
	assert_int_equal(ls_conv_slots(&g2, slot), 4);
	assert_memory_equal(slot, lower_right, sizeof(slot));
}

/* Multiply-adds: 3x3 with padding 1 meets a 2x2 map 16 times of 36. */
static void test_macs(void **state)
{
	ls_conv_geometry g = { .in_c = 5,
			       .out_c = 7,
			       .in_h = 2,
			       .in_w = 2,
			       .out_h = 2,
			       .out_w = 2,
			       .kernel_h = 3,
			       .kernel_w = 3,
			       .stride = 1,
			       .padding = 1 };
	(void)state;
	assert_true(ls_conv_macs(&g, 0) == 5 * 7 * 16);
	assert_true(ls_conv_macs(&g, 1) == 5 * 7 * 36);
}

TEST_MAIN(test_slots, test_macs, test_algorithm, test_gather, test_table, test_winograd, test_drawn, test_threads,
	  test_winograd_error, test_bf16, test_bf16_bits)
