/* Moments and the passes of batch normalisation against plain loops and against the reference batch norm. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

typedef struct panel_case {
	int64_t rows;
	int panel, real;
} panel_case;

static const panel_case cases[] = {
	{ 1, 16, 1 },   { 2, 16, 16 }, { 3, 32, 20 },   { 5, 48, 33 },
	{ 17, 64, 64 }, { 64, 64, 3 }, { 129, 64, 50 }, { 300, 16, 10 },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

/* m2 and mean of a column in double. */
static void column_moments(const float *x, const panel_case *k, int c, double *mean, double *m2)
{
	*mean = *m2 = 0;
	for (int64_t r = 0; r < k->rows; r++)
		*mean += x[r * k->panel + c];
	*mean /= (double)k->rows;
	for (int64_t r = 0; r < k->rows; r++)
		*m2 += (x[r * k->panel + c] - *mean) * (x[r * k->panel + c] - *mean);
}

/* With an offset of 1000 a sum of squares without a shift would have no correct digit. */
static void test_moments(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * CASES; i++) {
		const panel_case *k = &cases[i / 2];
		float *x = check_random_panel(k->rows, k->panel, k->real, (uint64_t)i);
		for (int64_t j = 0; i % 2 && j < k->rows * k->panel; j++)
			x[j] += j % k->panel < k->real ? 1000 : 0;
		CHECK_EACH_ISA(simd)
		{
			float mean[64], m2[64];
			simd->moments(x, k->rows, k->panel, mean, m2);
			for (int c = 0; c < k->panel; c++) {
				double expected_mean, expected_m2;
				column_moments(x, k, c, &expected_mean, &expected_m2);
				assert_true(fabs(mean[c] - expected_mean) <= 1e-6 * (1 + fabs(expected_mean)));
				const double step = 1e-7 * expected_mean; /* the mean's own rounding */
				assert_true(fabs(m2[c] - expected_m2) <=
					    2e-5 * expected_m2 + (double)k->rows * step * step);
				assert_true(c < k->real || (mean[c] == 0 && m2[c] == 0));
			}
		}
		free(x);
	}
}

static void expect_normalized(const panel_case *k, const float *x, const float *residual, const float *scale,
			      const float *shift, int relu, float *y)
{
	for (int64_t i = 0; i < k->rows * k->panel; i++) {
		float product = x[i] * scale[i % k->panel];
		float t = product + shift[i % k->panel];
		t = residual ? t + residual[i] : t;
		y[i] = relu && t < 0 ? 0 : t;
	}
}

/* alias: 0 apart, 1 y is x, 2 y is the residual. */
static void check_normalize(const ls_simd *simd, const panel_case *k, int with_residual, int relu, int alias)
{
	const int64_t count = k->rows * k->panel;
	float *x = check_random_panel(k->rows, k->panel, k->real, 100), *apart = check_floats(count);
	float *residual = check_random_panel(k->rows, k->panel, k->real, 101), *expected = check_floats(count);
	float *scale = check_random_panel(1, k->panel, k->real, 102),
	      *shift = check_random_panel(1, k->panel, k->real, 103);
	float *y = alias == 1 ? x : alias == 2 ? residual : apart;
	expect_normalized(k, x, with_residual ? residual : NULL, scale, shift, relu, expected);
	simd->normalize(x, with_residual ? residual : NULL, k->rows, k->panel, scale, shift, relu, y);
	check_same("normalize", y, expected, count);
	free(x);
	free(apart);
	free(residual);
	free(expected);
	free(scale);
	free(shift);
}

static void test_normalize(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int i = 0; i < CASES; i++)
		for (int form = 0; form < 12; form++)
			if (form / 4 != 2 || form % 2) /* y can be the residual only where there is one */
				check_normalize(simd, &cases[i], form % 2, form / 2 % 2, form / 4);
}

/* Masks computed from y and from x give the same bits: normalize() made y, and the kernels compute it again. */
static void check_mask_from_input(const ls_simd *simd, const panel_case *k)
{
	const int64_t count = k->rows * k->panel;
	float *x = check_random_panel(k->rows, k->panel, k->real, 300),
	      *dy = check_random_panel(k->rows, k->panel, k->real, 301);
	float *scale = check_random_panel(1, k->panel, k->real, 302),
	      *shift = check_random_panel(1, k->panel, k->real, 303);
	float *y = check_floats(count), *dx[2] = { check_floats(count), check_floats(count) }, sums[2][2][64];
	simd->normalize(x, NULL, k->rows, k->panel, scale, shift, 1, y);
	const ls_norm_mask masks[2] = { { .y = y }, { .scale = scale, .shift = shift } };
	for (int m = 0; m < 2; m++) {
		simd->normalize_sums(dy, masks[m], x, k->rows, k->panel, shift, NULL, sums[m][0], sums[m][1]);
		simd->normalize_input(dy, masks[m], x, k->rows, k->panel, scale, shift, scale, dx[m]);
	}
	check_same("sum g by x", sums[1][0], sums[0][0], k->panel);
	check_same("sum gx by x", sums[1][1], sums[0][1], k->panel);
	check_same("dx by x", dx[1], dx[0], count);
	float *all[] = { x, dy, scale, shift, y, dx[0], dx[1] };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void test_mask_from_input(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int i = 0; i < CASES; i++)
		check_mask_from_input(simd, &cases[i]);
}

typedef struct backward_case {
	const panel_case *k;
	float *dy, *y, *x, *mean, *g, *a, *b, *c;
	double sum_g[64], sum_gx[64];
} backward_case;

static backward_case backward_make(const panel_case *k, int rectified)
{
	backward_case t = { .k = k };
	t.dy = check_random_panel(k->rows, k->panel, k->real, 200);
	t.y = rectified ? check_random_panel(k->rows, k->panel, k->real, 201) : NULL;
	t.x = check_random_panel(k->rows, k->panel, k->real, 202);
	t.mean = check_random_panel(1, k->panel, k->real, 203);
	t.a = check_random_panel(1, k->panel, k->real, 204);
	t.b = check_random_panel(1, k->panel, k->real, 205);
	t.c = check_random_panel(1, k->panel, k->real, 206);
	t.g = check_floats(k->rows * k->panel);
	for (int64_t i = 0; i < k->rows * k->panel; i++) {
		const int c = (int)(i % k->panel);
		t.g[i] = !t.y || t.y[i] > 0 ? t.dy[i] : 0;
		t.sum_g[c] += t.g[i];
		t.sum_gx[c] += (double)t.g[i] * ((double)t.x[i] - t.mean[c]);
	}
	return t;
}

static void backward_free(backward_case *t)
{
	float *all[] = { t->dy, t->y, t->x, t->mean, t->g, t->a, t->b, t->c };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/* store: 0 not at all, 1 apart, 2 over dy. */
static void check_sums(const ls_simd *simd, const backward_case *t, int store)
{
	const int64_t count = t->k->rows * t->k->panel;
	float sum_g[64], sum_gx[64];
	float *dy = check_copy(t->dy, count), *apart = check_floats(count);
	float *g = store == 0 ? NULL : store == 1 ? apart : dy;
	simd->normalize_sums(dy, (ls_norm_mask){ .y = t->y }, t->x, t->k->rows, t->k->panel, t->mean, g, sum_g, sum_gx);
	for (int c = 0; c < t->k->panel; c++) {
		const double bound = 1e-6 * (double)(t->k->rows + 4);
		assert_true(fabs(sum_g[c] - t->sum_g[c]) <= bound);
		assert_true(fabs(sum_gx[c] - t->sum_gx[c]) <= 4 * bound);
		assert_true(c < t->k->real || (sum_g[c] == 0 && sum_gx[c] == 0));
	}
	if (g)
		check_same("g of normalize_sums", g, t->g, count);
	free(dy);
	free(apart);
}

static void check_input(const ls_simd *simd, const backward_case *t, int in_place)
{
	const int64_t count = t->k->rows * t->k->panel;
	float *dy = check_copy(t->dy, count), *apart = check_floats(count), *expected = check_floats(count);
	float *dx = in_place ? dy : apart;
	for (int64_t i = 0; i < count; i++) {
		const int c = (int)(i % t->k->panel);
		float from_g = t->a[c] * t->g[i], from_x = t->b[c] * t->x[i];
		float both = from_g + from_x;
		expected[i] = both + t->c[c];
	}
	simd->normalize_input(dy, (ls_norm_mask){ .y = t->y }, t->x, t->k->rows, t->k->panel, t->a, t->b, t->c, dx);
	check_same("normalize_input", dx, expected, count);
	free(dy);
	free(apart);
	free(expected);
}

static void test_backward_passes(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int i = 0; i < 2 * CASES; i++) {
		backward_case t = backward_make(&cases[i / 2], i % 2);
		for (int store = 0; store < 3; store++)
			check_sums(simd, &t, store);
		check_input(simd, &t, 0);
		check_input(simd, &t, 1);
		backward_free(&t);
	}
}

/* Sums run over rows in the same order everywhere, so not only close: the same. */
static void test_sums_agree_between_sets(void **state)
{
	(void)state;
	for (int i = 0; i < CASES; i++) {
		backward_case t = backward_make(&cases[i], 1);
		float sums[4][64], expected[4][64];
		const ls_simd *generic = ls_simd_of(LS_ISA_GENERIC);
		generic->moments(t.x, t.k->rows, t.k->panel, expected[0], expected[1]);
		generic->normalize_sums(t.dy, (ls_norm_mask){ .y = t.y }, t.x, t.k->rows, t.k->panel, t.mean, NULL,
					expected[2], expected[3]);
		CHECK_EACH_ISA(simd)
		{
			simd->moments(t.x, t.k->rows, t.k->panel, sums[0], sums[1]);
			simd->normalize_sums(t.dy, (ls_norm_mask){ .y = t.y }, t.x, t.k->rows, t.k->panel, t.mean, NULL,
					     sums[2], sums[3]);
			for (int s = 0; s < 4; s++)
				check_same("sums of two instruction sets", sums[s], expected[s], t.k->panel);
		}
		backward_free(&t);
	}
}

/*
 * The passes put together as a layer does: forward and backward of a batch norm over rows x channels (positions = 1),
 * with a = scale*s, b = -scale*s^3*sum_gx/N, c = -a*sum_g/N - b*mean, s = 1/sqrt(variance + epsilon).
 */
static void check_layer(const ls_simd *simd, int rows, int channels)
{
	const ls_reference_norm norm = { .n = rows, .c = channels, .positions = 1, .epsilon = 1e-5 };
	const int64_t count = (int64_t)rows * channels;
	float *x = check_random(count, 300), *dy = check_random(count, 301), *gain = check_random(channels, 302);
	float *offset = check_random(channels, 303), *y = check_floats(count), *dx = check_floats(count);
	float *want_y = check_floats(count), *want_dx = check_floats(count);
	float want_mean[64], want_variance[64], want_dgain[64], want_doffset[64];
	float mean[64], m2[64], scale[64], shift[64], sum_g[64], sum_gx[64], a[64], b[64], c[64], dgain[64];

	simd->moments(x, rows, channels, mean, m2);
	for (int k = 0; k < channels; k++) {
		scale[k] = gain[k] / sqrtf(m2[k] / (float)rows + 1e-5f);
		shift[k] = offset[k] - mean[k] * scale[k];
	}
	simd->normalize(x, NULL, rows, channels, scale, shift, 0, y);
	simd->normalize_sums(dy, (ls_norm_mask){ 0 }, x, rows, channels, mean, NULL, sum_g, sum_gx);
	for (int k = 0; k < channels; k++) {
		float inverse = 1 / sqrtf(m2[k] / (float)rows + 1e-5f);
		dgain[k] = sum_gx[k] * inverse;
		a[k] = gain[k] * inverse;
		b[k] = -a[k] * inverse * dgain[k] / (float)rows;
		c[k] = -a[k] * sum_g[k] / (float)rows - b[k] * mean[k];
	}
	simd->normalize_input(dy, (ls_norm_mask){ 0 }, x, rows, channels, a, b, c, dx);

	ls_reference_batch_norm(&norm, x, gain, offset, want_mean, want_variance, want_y);
	ls_reference_batch_norm_backward(&norm, x, gain, dy, want_dx, want_dgain, want_doffset);
	check_close("layer mean", mean, want_mean, channels, 1e-6, 1);
	check_close("layer output", y, want_y, count, 1e-5, 1);
	check_close("layer dx", dx, want_dx, count, 1e-5, 1);
	check_close("layer dscale", dgain, want_dgain, channels, 1e-5, sqrt(rows));
	check_close("layer dshift", sum_g, want_doffset, channels, 1e-5, sqrt(rows));
	float *all[] = { x, dy, gain, offset, y, dx, want_y, want_dx };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void test_layer_against_reference(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	{
		check_layer(simd, 2, 16);
		check_layer(simd, 37, 48);
		check_layer(simd, 256, 64);
	}
}

TEST_MAIN(test_moments, test_normalize, test_mask_from_input, test_backward_passes, test_sums_agree_between_sets,
	  test_layer_against_reference)
