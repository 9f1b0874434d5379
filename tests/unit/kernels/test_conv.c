/*
 * Convolution on panels against the reference: gather, forward with its epilogue, backward-data, backward-weights;
 * directly, by Winograd's algorithm, and in bf16.
 *
 * Operands are small integers, so that every sum is exact in whatever order it is taken and the comparison needs no
 * tolerance. Another pass with ordinary numbers compares the bits that teams of 1, 2 and 3 threads give.
 */
#include "unit/kernels/conv_kit.h"

#include "unit/test_main.h"

static const conv_shape table[] = {
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
static const conv_shape winograd_table[] = {
	{ 64, 64, 7, 7, 3, 3, 1, 1, 7 },   { 64, 64, 4, 4, 3, 3, 1, 1, 65 },  { 20, 20, 4, 4, 3, 3, 1, 1, 300 },
	{ 70, 130, 2, 2, 3, 3, 1, 1, 65 }, { 16, 16, 7, 7, 3, 3, 1, 1, 1 },   { 130, 70, 3, 3, 3, 3, 1, 1, 33 },
	{ 32, 64, 14, 14, 3, 3, 1, 1, 5 }, { 16, 40, 28, 9, 3, 3, 1, 1, 2 },  { 64, 16, 5, 8, 3, 3, 1, 0, 64 },
	{ 20, 33, 4, 5, 3, 3, 1, 0, 31 },  { 33, 16, 2, 3, 3, 3, 1, 2, 17 },  { 16, 16, 6, 5, 3, 3, 1, 2, 128 },
	{ 200, 140, 5, 6, 3, 3, 1, 1, 3 }, { 16, 16, 2, 17, 3, 3, 1, 1, 63 },
};
enum { WINOGRAD_ROWS = sizeof(winograd_table) / sizeof(winograd_table[0]) };

static int64_t terms(const conv_shape *s)
{
	return (int64_t)s->in_c * s->out_c * s->in_h * s->in_w * s->kernel_h * s->kernel_w * s->n /
	       (s->stride * s->stride);
}

static void check_panels(const conv_kit *k, const char *what, const panels_shape *s, const float *panels,
			 const float *dense)
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

static void check_weights(const conv_kit *k, const conv_made *m, const float *expected, float before)
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
static void check_moments(const conv_kit *k, const conv_made *m, const float *y)
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

static expected answers(const conv_kit *k)
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

static void check_results(const conv_kit *k, conv_made *m, const expected *e, int accumulate, int epilogue)
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

static void check_shape(const conv_shape *s, ls_conv_algorithm algorithm, const ls_bf16_kernels *bf16)
{
	conv_kit k;
	conv_kit_init(&k, s, algorithm, bf16, 1);
	assert_int_equal(k.plan[0].winograd != NULL, algorithm == LS_CONV_WINOGRAD);
	expected e = answers(&k);
	float *answer[] = { e.y, e.act, e.dx, e.dw };
	int64_t sizes[] = { panels_dense(&k.out), panels_dense(&k.out), k.geometry.gathered ? 0 : panels_dense(&k.in),
			    (int64_t)ls_param_elements(&k.weight) };

	for (int i = 0; i < 4; i++)
		wash(answer[i], sizes[i]);
	for (int round = 0; round < 2; round++) {
		conv_made m;
		conv_run(&k, &m, 1, round, round);
		check_results(&k, &m, &e, round, round);
		conv_made_release(&m);
	}
	for (int i = 0; i < 4; i++)
		free(answer[i]);
	conv_kit_release(&k);
}

static void check_threads(const conv_shape *s, ls_conv_algorithm algorithm, const ls_bf16_kernels *bf16)
{
	conv_kit k;
	conv_made one, more;
	conv_kit_init(&k, s, algorithm, bf16, 0);
	conv_run(&k, &one, 1, 0, 1);
	for (int threads = 2; threads <= CONV_THREADS_MAX; threads++) {
		int64_t moments = k.plan[0].forward.tiles * k.plan[0].forward.blocks * k.plan[0].forward.panel;
		conv_run(&k, &more, threads, 0, 1);
		check_same(k.name, more.y, one.y, panels_floats(&k.out));
		check_same(k.name, more.mean, one.mean, moments);
		check_same(k.name, more.m2, one.m2, moments);
		check_same(k.name, more.dx, one.dx, k.geometry.gathered ? 0 : panels_floats(&k.in));
		check_same(k.name, more.dw, one.dw, (int64_t)k.weight.count);
		conv_made_release(&more);
	}
	conv_made_release(&one);
	conv_kit_release(&k);
}

static void check_table(const ls_bf16_kernels *bf16)
{
	for (int i = 0; i < ROWS; i++)
		check_shape(&table[i], LS_CONV_DIRECT, bf16);
}

static void test_table(void **state)
{
	(void)state;
	check_table(NULL);
}

/* Filters of whole numbers have quarters when transformed: sums are still exact. */
static void test_winograd(void **state)
{
	(void)state;
	for (int i = 0; i < WINOGRAD_ROWS; i++)
		check_shape(&winograd_table[i], LS_CONV_WINOGRAD, NULL);
}

/* Draw shapes from the values that make trouble. */
static int drawn(conv_shape *s, uint64_t draw)
{
	static const int channels[] = { 1, 3, 16, 20, 32, 64, 70, 130 }, kernels[] = { 1, 2, 3, 5, 7 };
	static const int maps[][2] = { { 1, 1 }, { 2, 2 }, { 4, 4 }, { 7, 7 }, { 5, 3 } };
	static const int64_t samples[] = { 1, 2, 7, 33, 64, 65, 128, 300 };
	uint32_t w[12];
	for (int i = 0; i < 3; i++)
		ls_rng_words(ls_rng_make(CHECK_SEED, LS_RNG_TEST, 99), draw, (uint64_t)i, w + 4 * i);
	const int *map = maps[ls_rng_below(w[0], 5)];
	*s = (conv_shape){ .in_c = channels[ls_rng_below(w[1], 8)],
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

static void check_drawn(const ls_bf16_kernels *bf16)
{
	int checked = 0;
	for (uint64_t draw = 0; checked < 120; draw++) {
		conv_shape s;
		if (!drawn(&s, draw))
			continue;
		check_shape(&s, LS_CONV_DIRECT, bf16);
		checked++;
	}
}

static void test_drawn(void **state)
{
	(void)state;
	check_drawn(NULL);
}

static void check_teams(const ls_bf16_kernels *bf16)
{
	for (int i = 0; i < ROWS; i++)
		check_threads(&table[i], LS_CONV_DIRECT, bf16);
}

static void test_threads(void **state)
{
	(void)state;
	check_teams(NULL);
	for (int i = 0; i < WINOGRAD_ROWS; i++)
		check_threads(&winograd_table[i], LS_CONV_WINOGRAD, NULL);
}

/* A row of patches: depth index = tap * channels + channel, zeros outside the image. */
static void test_gather(void **state)
{
	(void)state;
	for (int row = 0; row < ROWS; row++) {
		conv_kit k;
		conv_made m;
		if (table[row].in_c >= 16)
			continue;
		conv_kit_init(&k, &table[row], LS_CONV_DIRECT, NULL, 0);
		conv_run(&k, &m, 2, 0, 0);
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
		conv_made_release(&m);
		conv_kit_release(&k);
	}
}

/* Whole numbers, which bf16 holds: products are exact, so the answers are those of the reference. */
static void test_bf16(void **state)
{
	(void)state;
	for (int amx = 0; amx < 2; amx++) {
		const ls_bf16_kernels *bf16 = amx ? ls_bf16_amx_get() : ls_bf16_get();
		check_table(bf16);
		check_drawn(bf16);
		check_teams(bf16);
	}
}

TEST_MAIN(test_gather, test_table, test_winograd, test_drawn, test_threads, test_bf16)
