/*
 * Convolution on panels against the reference: gather, forward with its epilogue, backward-data, backward-weights.
 *
 * Operands are small integers, so that every sum is exact in whatever order it is taken and the comparison needs no
 * tolerance. Another pass with ordinary numbers compares the bits that teams of 1, 2 and 3 threads give.
 */
#include "unit/kernels/simd_check.h"

#include <stdio.h>

#include "kernels/conv.h"
#include "support/reference.h"
#include "unit/panels.h"
#include "unit/test_main.h"

enum { THREADS_MAX = 3, TAPS_MAX = 64 };

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

/* One convolution with its operands, in both layouts. */
typedef struct kit {
	char name[160];
	ls_arena arena;
	ls_reference_window window;
	ls_conv_geometry geometry;
	int16_t slot[TAPS_MAX];
	ls_param weight;
	ls_param_table params;          /* of that one row */
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

static void kit_init(kit *k, const shape *s, int whole)
{
	*k = (kit){ 0 };
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
		assert_int_equal(
			ls_conv_plan_make(&k->plan[i], &k->arena, &k->geometry, s->n, &k->weight.layout, i + 1), LS_OK);
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
	m->turned = check_floats((int64_t)k->weight.count);
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

static void check_shape(const shape *s)
{
	kit k;
	kit_init(&k, s, 1);
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

static void check_threads(const shape *s)
{
	kit k;
	made one, more;
	kit_init(&k, s, 0);
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
		check_shape(&table[i]);
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
		check_shape(&s);
		checked++;
	}
}

static void test_threads(void **state)
{
	(void)state;
	for (int i = 0; i < ROWS; i++)
		check_threads(&table[i]);
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
		kit_init(&k, &table[row], 0);
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

TEST_MAIN(test_slots, test_macs, test_gather, test_table, test_drawn, test_threads)
