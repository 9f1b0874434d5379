/* Pooling on panels against the reference in PyTorch's layout. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

/* n, in_c, out_c, in_h, in_w, out_h, out_w (computed), kernel_h, kernel_w, stride, padding */
static const ls_reference_window cases[] = {
	{ 3, 16, 16, 4, 4, 0, 0, 2, 2, 2, 0 },   { 1, 1, 1, 5, 7, 0, 0, 2, 2, 2, 0 },
	{ 2, 20, 20, 14, 14, 0, 0, 3, 3, 2, 1 }, { 5, 64, 64, 7, 6, 0, 0, 3, 3, 2, 1 },
	{ 4, 33, 33, 5, 5, 0, 0, 3, 3, 1, 1 },   { 2, 16, 16, 7, 7, 0, 0, 7, 7, 1, 0 },
	{ 1, 5, 5, 3, 9, 0, 0, 3, 9, 3, 0 },     { 3, 48, 48, 9, 8, 0, 0, 2, 3, 3, 1 },
	{ 2, 10, 10, 6, 6, 0, 0, 5, 5, 2, 2 },   { 7, 3, 3, 1, 1, 0, 0, 1, 1, 1, 0 },
	{ 2, 16, 16, 2, 2, 0, 0, 3, 3, 2, 1 },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

typedef struct pooling {
	ls_reference_window window;
	ls_pool_geometry geometry;
	int64_t in_count, out_count;   /* logical */
	int64_t in_floats, out_floats; /* panels */
} pooling;

static pooling pooling_make(const ls_reference_window *w)
{
	pooling p = { .window = *w };
	ls_reference_window_finish(&p.window);
	w = &p.window;
	p.geometry = (ls_pool_geometry){ .in_h = w->in_h,
					 .in_w = w->in_w,
					 .out_h = w->out_h,
					 .out_w = w->out_w,
					 .kernel_h = w->kernel_h,
					 .kernel_w = w->kernel_w,
					 .stride = w->stride,
					 .padding = w->padding,
					 .n = w->n,
					 .panel = (w->in_c + 15) / 16 * 16 };
	p.in_count = (int64_t)w->n * w->in_c * w->in_h * w->in_w;
	p.out_count = (int64_t)w->n * w->in_c * w->out_h * w->out_w;
	p.in_floats = (int64_t)w->in_h * w->in_w * w->n * p.geometry.panel;
	p.out_floats = (int64_t)w->out_h * w->out_w * w->n * p.geometry.panel;
	return p;
}

/* Where logical element k of an (n, c, positions) map lies in its panel. */
static int64_t panel_place(const pooling *p, int64_t k, int positions)
{
	const int64_t q = k % positions, c = k / positions % p->window.in_c, i = k / positions / p->window.in_c;
	return (q * p->window.n + i) * p->geometry.panel + c;
}

static float *to_panel(const pooling *p, const float *logical, int positions)
{
	const int64_t floats = (int64_t)positions * p->window.n * p->geometry.panel;
	float *panel = check_floats(floats);
	memset(panel, 0, (size_t)floats * sizeof(float));
	for (int64_t k = 0; k < (int64_t)positions * p->window.n * p->window.in_c; k++)
		panel[panel_place(p, k, positions)] = logical[k];
	return panel;
}

/* Panel equals the logical tensor, and its padding channels are zero. */
static void assert_panel(const char *what, const pooling *p, const float *panel, const float *logical, int positions,
			 double tolerance)
{
	float *expected = to_panel(p, logical, positions);
	check_close(what, panel, expected, (int64_t)positions * p->window.n * p->geometry.panel, tolerance, 1);
	free(expected);
}

/* Coarse values, so that windows hold equal maxima. */
static float *coarse_random(int64_t count, uint64_t stream)
{
	float *x = check_random(count, stream);
	for (int64_t i = 0; i < count; i++)
		x[i] = nearbyintf(2 * x[i]);
	return x;
}

static void check_max(const ls_simd *simd, const pooling *p, const float *logical, const float *dy_logical)
{
	const int in = p->window.in_h * p->window.in_w, out = p->window.out_h * p->window.out_w;
	float *x = to_panel(p, logical, in), *dy = to_panel(p, dy_logical, out), *y = check_floats(p->out_floats);
	float *dx = check_floats(p->in_floats), *want_y = check_floats(p->out_count),
	      *want_dx = check_floats(p->in_count);
	uint8_t *arg = check_bytes((size_t)p->out_floats), *want_arg = check_bytes((size_t)p->out_count);

	ls_reference_max_pool(&p->window, logical, want_y, want_arg);
	ls_reference_max_pool_backward(&p->window, dy_logical, want_arg, want_dx);
	for (int oy = 0; oy < p->window.out_h; oy++)
		simd->max_pool(&p->geometry, x, oy, y, arg);
	assert_panel("max_pool", p, y, want_y, out, 0);
	for (int64_t k = 0; k < p->out_count; k++)
		assert_int_equal(arg[panel_place(p, k, out)], want_arg[k]);
	for (int accumulate = 0; accumulate < 2; accumulate++) {
		for (int iy = 0; iy < p->window.in_h; iy++)
			simd->max_pool_backward(&p->geometry, dy, arg, iy, accumulate, dx);
		assert_panel("max_pool_backward", p, dx, want_dx, in, 1e-6);
		for (int64_t k = 0; k < p->in_count; k++)
			want_dx[k] *= 2; /* what the second pass adds up to */
	}
	float *all[] = { x, dy, y, dx, want_y, want_dx };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
	free(arg);
	free(want_arg);
}

static void check_average(const ls_simd *simd, const pooling *p, const float *logical, const float *dy_logical)
{
	const int in = p->window.in_h * p->window.in_w, out = p->window.out_h * p->window.out_w;
	float *x = to_panel(p, logical, in), *dy = to_panel(p, dy_logical, out), *y = check_floats(p->out_floats);
	float *dx = check_floats(p->in_floats), *want_y = check_floats(p->out_count),
	      *want_dx = check_floats(p->in_count);

	ls_reference_avg_pool(&p->window, logical, want_y);
	ls_reference_avg_pool_backward(&p->window, dy_logical, want_dx);
	for (int oy = 0; oy < p->window.out_h; oy++)
		simd->avg_pool(&p->geometry, x, oy, y);
	assert_panel("avg_pool", p, y, want_y, out, 1e-6);
	for (int accumulate = 0; accumulate < 2; accumulate++) {
		for (int iy = 0; iy < p->window.in_h; iy++)
			simd->avg_pool_backward(&p->geometry, dy, iy, accumulate, dx);
		assert_panel("avg_pool_backward", p, dx, want_dx, in, 1e-6);
		for (int64_t k = 0; k < p->in_count; k++)
			want_dx[k] *= 2;
	}
	float *all[] = { x, dy, y, dx, want_y, want_dx };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void test_against_reference(void **state)
{
	(void)state;
	for (int i = 0; i < CASES; i++) {
		const pooling p = pooling_make(&cases[i]);
		float *x = coarse_random(p.in_count, (uint64_t)i), *dy = check_random(p.out_count, 100 + (uint64_t)i);
		CHECK_EACH_ISA(simd)
		{
			check_max(simd, &p, x, dy);
			check_average(simd, &p, x, dy);
		}
		free(x);
		free(dy);
	}
}

/* A window of -inf only chooses its first tap inside the image; NaN wins over what came before. */
static void test_infinite_and_nan(void **state)
{
	(void)state;
	const pooling p = pooling_make(&(ls_reference_window){ 1, 16, 16, 4, 4, 0, 0, 3, 3, 2, 1 });
	CHECK_EACH_ISA(simd)
	{
		float x[16 * 16], y[4 * 16];
		uint8_t arg[4 * 16];
		for (int i = 0; i < 16 * 16; i++)
			x[i] = -INFINITY;
		x[(1 * 4 + 2) * 16 + 7] = NAN; /* last tap of the first row of windows that see it */
		simd->max_pool(&p.geometry, x, 0, y, arg);
		assert_true(y[0] == -INFINITY && arg[0] == 4);
		assert_true(y[16] == -INFINITY && arg[16] == 3);
		assert_true(isnan(y[16 + 7]) && arg[16 + 7] == 7);
		assert_true(y[7] == -INFINITY && arg[7] == 4);
	}
}

TEST_MAIN(test_against_reference, test_infinite_and_nan)
