/* Layer norm over panels against the reference, with and without a residual, in ranges of rows, in place. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

#define EPSILON 1e-12f

typedef struct norm_case {
	ls_row_shape shape;
	int64_t begin, end;
} norm_case;

static const norm_case cases[] = {
	{ { 1, 16, 1 }, 0, 1 },     { { 1, 64, 64 }, 0, 1 },  { { 3, 16, 10 }, 0, 3 },   { { 5, 32, 33 }, 1, 5 },
	{ { 7, 64, 100 }, 2, 7 },   { { 9, 64, 768 }, 0, 9 }, { { 13, 64, 70 }, 4, 11 }, { { 6, 32, 48 }, 0, 6 },
	{ { 37, 16, 160 }, 5, 29 }, { { 8, 64, 16 }, 3, 3 },  { { 4, 64, 300 }, 0, 4 },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

static int64_t padded(const ls_row_shape *s)
{
	return (s->channels + s->panel - 1) / s->panel * s->panel;
}

static int64_t floats(const ls_row_shape *s)
{
	return padded(s) * s->rows;
}

static int64_t place(const ls_row_shape *s, int64_t r, int c)
{
	return ((c / s->panel) * s->rows + r) * s->panel + c % s->panel;
}

/* Dense (rows, channels) as panels, with zeros behind. */
static float *panels(const ls_row_shape *s, const float *dense)
{
	float *p = check_floats(floats(s));
	memset(p, 0, (size_t)floats(s) * sizeof(*p));
	for (int64_t r = 0; r < s->rows; r++)
		for (int c = 0; c < s->channels; c++)
			p[place(s, r, c)] = dense[r * s->channels + c];
	return p;
}

/* Rows [begin, end) are the dense ones, zero past the channels; other rows are untouched (NaN). */
static void check_panels(const char *what, const norm_case *k, const float *got, const float *dense, double tolerance)
{
	const ls_row_shape *s = &k->shape;
	for (int64_t r = 0; r < s->rows; r++)
		for (int c = 0; c < padded(s); c++) {
			const float value = got[place(s, r, c)];
			if (r < k->begin || r >= k->end)
				assert_true(isnan(value));
			else if (c >= s->channels)
				assert_true(value == 0);
			else
				check_close(what, &value, &dense[r * s->channels + c], 1, tolerance, 1);
		}
}

/* A case: dense inputs and what should come out. */
typedef struct fixture {
	const norm_case *k;
	float *x, *residual, *sum, *dy; /* (rows, channels) */
	float *gamma, *beta;            /* (padded) */
	float *y, *mean, *inverse, *ds; /* expected, dense */
	float *dgamma, *dbeta;          /* over [begin, end) */
} fixture;

static fixture fixture_make(const norm_case *k, float offset, float spike)
{
	const ls_row_shape *s = &k->shape;
	const int64_t count = s->rows * s->channels;
	fixture f = { .k = k, .x = check_random(count, 1), .residual = check_random(count, 2) };
	f.sum = check_floats(count);
	f.dy = check_random(count, 3);
	f.gamma = check_random_panel(1, (int)padded(s), s->channels, 4);
	f.beta = check_random_panel(1, (int)padded(s), s->channels, 5);
	f.y = check_floats(count);
	f.mean = check_floats(s->rows);
	f.inverse = check_floats(s->rows);
	f.ds = check_floats(count);
	f.dgamma = check_floats(s->channels);
	f.dbeta = check_floats(s->channels);
	for (int64_t i = 0; i < count; i++) {
		f.x[i] += offset + (i % s->channels == 0 ? spike : 0);
		f.sum[i] = f.x[i] + f.residual[i];
	}
	return f;
}

static void fixture_expect(fixture *f, const float *s)
{
	const norm_case *k = f->k;
	const int64_t skip = k->begin * k->shape.channels;
	const ls_reference_rows all = { k->shape.rows, k->shape.channels, EPSILON };
	const ls_reference_rows part = { k->end - k->begin, k->shape.channels, EPSILON };
	ls_reference_layer_norm(&all, s, f->gamma, f->beta, f->mean, f->inverse, f->y);
	ls_reference_layer_norm_backward(&part, s + skip, f->gamma, f->dy + skip, f->ds + skip, f->dgamma, f->dbeta);
}

static void fixture_free(fixture *f)
{
	float *all[] = { f->x, f->residual, f->sum,     f->dy, f->gamma,  f->beta,
			 f->y, f->mean,     f->inverse, f->ds, f->dgamma, f->dbeta };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/* alias: 0 no residual, 1 s apart, 2 s over x, 3 s over the residual. */
static void check_forward(const ls_simd *simd, const fixture *f, int alias, double tolerance)
{
	const norm_case *k = f->k;
	const ls_row_shape *s = &k->shape;
	float *x = panels(s, f->x), *residual = panels(s, f->residual), *apart = check_floats(floats(s));
	float *y = check_floats(floats(s)), *mean = check_floats(s->rows), *inverse = check_floats(s->rows);
	float *sum = alias == 0 ? NULL : alias == 1 ? apart : alias == 2 ? x : residual;
	simd->layer_norm(s, x, alias ? residual : NULL, k->begin, k->end, f->gamma, f->beta, EPSILON, sum, y, mean,
			 inverse);
	check_panels("layer norm", k, y, f->y, tolerance);
	if (alias == 1)
		check_panels("sum with the residual", k, sum, f->sum, 0);
	for (int64_t r = k->begin; alias && r < k->end; r++)
		for (int c = 0; c < padded(s); c++)
			assert_true(sum[place(s, r, c)] == (c < s->channels ? f->sum[r * s->channels + c] : 0));
	check_close("mean", mean + k->begin, f->mean + k->begin, k->end - k->begin, 3e-7, 1);
	check_close("inverse", inverse + k->begin, f->inverse + k->begin, k->end - k->begin, tolerance, 0);
	float *all[] = { x, residual, apart, y, mean, inverse };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void check_backward(const ls_simd *simd, const fixture *f, const float *dense, int in_place, double tolerance)
{
	const norm_case *k = f->k;
	const ls_row_shape *s = &k->shape;
	float *dy = panels(s, f->dy), *sum = panels(s, dense), *apart = check_floats(floats(s));
	float *ds = in_place ? dy : apart, *dgamma = check_floats(padded(s)), *dbeta = check_floats(padded(s));
	for (int64_t r = 0; in_place && r < s->rows; r++)
		for (int c = 0; (r < k->begin || r >= k->end) && c < padded(s); c++)
			dy[place(s, r, c)] = NAN; /* what a range does not own it does not read */
	simd->layer_norm_backward(s, dy, sum, k->begin, k->end, f->gamma, f->mean, f->inverse, ds, dgamma, dbeta);
	check_panels("layer norm's gradient", k, ds, f->ds, tolerance);
	check_close("dgamma", dgamma, f->dgamma, s->channels, tolerance, sqrt((double)s->rows));
	check_close("dbeta", dbeta, f->dbeta, s->channels, tolerance, sqrt((double)s->rows));
	for (int64_t c = s->channels; c < padded(s); c++)
		assert_true(dgamma[c] == 0 && dbeta[c] == 0);
	float *all[] = { dy, sum, apart, dgamma, dbeta };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void check_case(const norm_case *k, float offset, float spike, double tolerance)
{
	fixture f = fixture_make(k, offset, spike);
	CHECK_EACH_ISA(simd)
	{
		fixture_expect(&f, f.x);
		check_forward(simd, &f, 0, tolerance);
		check_backward(simd, &f, f.x, 0, tolerance * 4);
		check_backward(simd, &f, f.x, 1, tolerance * 4);
		fixture_expect(&f, f.sum);
		for (int alias = 1; alias < 4; alias++)
			check_forward(simd, &f, alias, tolerance);
	}
	fixture_free(&f);
}

static void test_against_reference(void **state)
{
	(void)state;
	for (int i = 1; i < CASES; i++) /* one channel has no variance: below */
		check_case(&cases[i], 0, 0, 2e-6);
}

/* Offsets and single large channels cost no more digits than storing the mean does. */
static void test_no_cancellation(void **state)
{
	(void)state;
	for (int i = 4; i < CASES; i++) {
		check_case(&cases[i], 1000, 0, 2e-4);
		check_case(&cases[i], 0, 300, 1e-5);
	}
}

/* Rows of equal channels: a variance of zero, not the square of the mean's rounding, which exceeds this epsilon. */
static void check_constant(const ls_simd *simd, const ls_row_shape *s, float value)
{
	float *dense = check_floats(s->rows * s->channels), *y = check_floats(floats(s)), mean[5], inverse[5];
	float *gamma = check_random_panel(1, (int)padded(s), s->channels, 6);
	for (int64_t j = 0; j < s->rows * s->channels; j++)
		dense[j] = value;
	float *x = panels(s, dense);
	simd->layer_norm(s, x, NULL, 0, s->rows, gamma, gamma, EPSILON, NULL, y, mean, inverse);
	for (int64_t r = 0; r < s->rows; r++) {
		assert_true(fabsf(mean[r] - value) <= 1.2e-7f * value);
		assert_true(fabsf(inverse[r] - 1e6f) < 1e3f);
	}
	free(dense);
	free(y);
	free(gamma);
	free(x);
}

static void test_constant_rows(void **state)
{
	(void)state;
	const ls_row_shape shapes[] = { { 1, 16, 1 }, { 5, 64, 100 }, { 4, 32, 768 }, { 5, 64, 300 } };
	CHECK_EACH_ISA(simd)
	for (int i = 0; i < 4; i++) {
		check_constant(simd, &shapes[i], 12.3f);
		check_constant(simd, &shapes[i], 1000.1f);
		check_constant(simd, &shapes[i], 77777.7f);
	}
}

/* Same bits for every instruction set, and wherever ranges are cut. */
static void test_same_bits(void **state)
{
	(void)state;
	const norm_case k = { { 23, 64, 200 }, 0, 23 };
	const ls_row_shape *s = &k.shape;
	fixture f = fixture_make(&k, 3, 0);
	fixture_expect(&f, f.x);
	float *x = panels(s, f.x), *dy = panels(s, f.dy), *out[2][6];
	const int64_t counts[6] = { floats(s), 23, 23, floats(s), padded(s), padded(s) };
	for (int i = 0; i < 12; i++)
		out[i / 6][i % 6] = check_floats(counts[i % 6]);
	CHECK_EACH_ISA(simd)
	for (int64_t cut = 0; cut < 7; cut++) {
		float **o = out[simd != ls_simd_of(LS_ISA_GENERIC) || cut > 0];
		simd->layer_norm(s, x, NULL, cut, 23, f.gamma, f.beta, EPSILON, NULL, o[0], o[1], o[2]);
		simd->layer_norm(s, x, NULL, 0, cut, f.gamma, f.beta, EPSILON, NULL, o[0], o[1], o[2]);
		simd->layer_norm_backward(s, dy, x, 0, 23, f.gamma, o[1], o[2], o[3], o[4], o[5]);
		for (int i = 0; i < 6 && o != out[0]; i++)
			check_same("layer norm", o[i], out[0][i], counts[i]);
	}
	for (int i = 0; i < 12; i++)
		free(out[i / 6][i % 6]);
	free(x);
	free(dy);
	fixture_free(&f);
}

/* sum of dy*y moved by the gradient, element by element. */
static double objective(const ls_simd *simd, const ls_row_shape *s, const float *x, const float *gamma, const float *dy)
{
	float y[128], mean[2], inverse[2];
	double sum = 0;
	simd->layer_norm(s, x, NULL, 0, s->rows, gamma, gamma, 1e-5f, NULL, y, mean, inverse);
	for (int64_t i = 0; i < floats(s); i++)
		sum += (double)dy[i] * y[i];
	return sum;
}

static void test_finite_differences(void **state)
{
	(void)state;
	const norm_case k = { { 2, 32, 40 }, 0, 2 };
	const ls_row_shape *s = &k.shape;
	fixture f = fixture_make(&k, 1, 0);
	float *x = panels(s, f.x), *dy = panels(s, f.dy), y[128], mean[2], inverse[2], ds[128], dgamma[64], dbeta[64];
	CHECK_EACH_ISA(simd)
	{
		simd->layer_norm(s, x, NULL, 0, 2, f.gamma, f.gamma, 1e-5f, NULL, y, mean, inverse);
		simd->layer_norm_backward(s, dy, x, 0, 2, f.gamma, mean, inverse, ds, dgamma, dbeta);
		for (int i = 0; i < 40; i++) {
			float *at = &x[place(s, i % 2, i)], kept = *at;
			*at = kept + 0x1p-6f;
			double above = objective(simd, s, x, f.gamma, dy);
			*at = kept - 0x1p-6f;
			double below = objective(simd, s, x, f.gamma, dy);
			*at = kept;
			assert_true(fabs((above - below) * 32 - ds[place(s, i % 2, i)]) < 2e-3);
		}
	}
	free(x);
	free(dy);
	fixture_free(&f);
}

/* A NaN reaches its row and no other. */
static void test_not_a_number(void **state)
{
	(void)state;
	const ls_row_shape s = { 6, 16, 20 };
	CHECK_EACH_ISA(simd)
	for (int64_t bad = 0; bad < 6; bad++) {
		float *x = check_random_panel(12, 16, 16, 7), y[192], mean[6], inverse[6], gamma[32] = { 1, 2, 3 };
		for (int64_t r = 0; r < 6; r++)
			memset(&x[place(&s, r, 20)], 0, 12 * sizeof(*x));
		x[place(&s, bad, 17)] = NAN;
		simd->layer_norm(&s, x, NULL, 0, 6, gamma, gamma, EPSILON, NULL, y, mean, inverse);
		for (int64_t r = 0; r < 6; r++)
			for (int c = 0; c < 32; c++)
				assert_true(isnan(y[place(&s, r, c)]) == (r == bad && c < 20));
		free(x);
	}
}

TEST_MAIN(test_against_reference, test_no_cancellation, test_constant_rows, test_same_bits, test_finite_differences,
	  test_not_a_number)
