/* Gaussian error linear units and the hyperbolic tangent against libm, at the ends of the numbers, and in place. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

enum { COUNT = 1 << 18 };

/* Every magnitude that matters and both signs: a fine grid of [-12, 12], then powers from 1e-38 to 1e38. */
static float *grid(void)
{
	float *x = check_floats(COUNT);
	for (int i = 0; i < COUNT; i++)
		x[i] = i < COUNT - 4096 ? 24.0f * (float)i / (COUNT - 4096) - 12
					: (i % 2 ? 1.0f : -1.0f) * powf(10, (float)(i % 4096 - 2048) * (38.0f / 2048));
	return x;
}

static void test_gelu(void **state)
{
	(void)state;
	float *x = grid(), *expected = check_floats(COUNT), *slope = check_floats(COUNT), *y = check_floats(COUNT);
	float *dy = check_random(COUNT, 1), *dx = check_floats(COUNT);
	CHECK_EACH_ISA(simd)
	for (int approximate = 0; approximate < 2; approximate++) {
		ls_reference_gelu(COUNT, approximate, x, expected);
		ls_reference_gelu_backward(COUNT, approximate, x, dy, slope);
		for (int i = 0; i < COUNT; i++) /* the formula's own inf * 0 */
			slope[i] = fabsf(x[i]) > 20 ? (x[i] > 0 ? dy[i] : 0) : slope[i];
		simd->gelu(x, COUNT, approximate, y);
		check_close("gelu", y, expected, COUNT, 2e-7, 1);
		simd->gelu_backward(dy, x, COUNT, approximate, dx);
		check_close("gelu's gradient", dx, slope, COUNT, 3e-7, 3);
	}
	float *all[] = { x, expected, slope, y, dy, dx };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/* A factor of ten to the limit a pooled output needs: digits near zero are relative. */
static void test_tanh(void **state)
{
	(void)state;
	float *x = grid(), *y = check_floats(COUNT), *dy = check_random(COUNT, 2), *dx = check_floats(COUNT);
	CHECK_EACH_ISA(simd)
	{
		simd->tanh(x, COUNT, y);
		simd->tanh_backward(dy, y, COUNT, dx);
		for (int i = 0; i < COUNT; i++) {
			const double t = tanh((double)x[i]);
			if (!(fabs(y[i] - t) <= 3e-7 * fabs(t) + 1e-44) || fabsf(y[i]) > 1)
				fail_msg("tanh %.9g is %.9g, expected %.9g", (double)x[i], (double)y[i], t);
			assert_true(fabs(dx[i] - dy[i] * (1 - t * t)) <= 1e-6 * fabs((double)dy[i]));
		}
	}
	free(x);
	free(y);
	free(dy);
	free(dx);
}

/* Finite differences of the double formulas, so that value and gradient cannot be wrong together. */
static void test_gradients(void **state)
{
	(void)state;
	float x[64], ones[64], y[64], dx[64];
	CHECK_EACH_ISA(simd)
	for (int form = 0; form < 3; form++) { /* erf, tanh form, tanh itself */
		float side[2][64], sides[2][64];
		for (int i = 0; i < 64; i++) {
			x[i] = (float)i / 8 - 4;
			ones[i] = 1;
			side[0][i] = x[i] - 0x1p-6f;
			side[1][i] = x[i] + 0x1p-6f;
		}
		for (int s = 0; s < 2; s++)
			if (form < 2)
				simd->gelu(side[s], 64, form, sides[s]);
			else
				simd->tanh(side[s], 64, sides[s]);
		if (form < 2) {
			simd->gelu_backward(ones, x, 64, form, dx);
		} else {
			simd->tanh(x, 64, y);
			simd->tanh_backward(ones, y, 64, dx);
		}
		for (int i = 0; i < 64; i++)
			assert_true(fabsf((sides[1][i] - sides[0][i]) * 32 - dx[i]) < 2e-4f);
	}
}

static void test_ends(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int approximate = 0; approximate < 2; approximate++) {
		float x[16] = { NAN, INFINITY, -INFINITY, 0, -0.0f, 3e38f, -3e38f, 1e-40f, -1e-40f, -NAN }, y[16],
		      dx[16];
		float ones[16];
		for (int i = 0; i < 16; i++)
			ones[i] = 1;
		simd->gelu(x, 16, approximate, y);
		simd->gelu_backward(ones, x, 16, approximate, dx);
		assert_true(isnan(y[0]) && isnan(y[9]) && isnan(dx[0]) && isnan(dx[9]));
		assert_true(y[1] == INFINITY && y[2] == 0 && y[3] == 0 && y[4] == 0 && y[5] == 3e38f && y[6] == 0);
		assert_true(dx[1] == 1 && dx[2] == 0 && fabsf(dx[3] - 0.5f) < 1e-7f && dx[5] == 1 && dx[6] == 0);
		simd->tanh(x, 16, y);
		assert_true(isnan(y[0]) && isnan(y[9]) && y[1] == 1 && y[2] == -1 && y[3] == 0 && y[5] == 1 &&
			    y[6] == -1);
		assert_true(signbit(y[4]) && !signbit(y[3]));
	}
}

/* Any multiple of 16, over its own input. */
static void test_in_place(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int count = 0; count <= 80; count += 16) {
		float *x = check_random(count, 3), *dy = check_random(count, 4), *got = check_copy(x, count);
		float *y = check_floats(count), *dx = check_copy(dy, count), *apart = check_floats(count);
		simd->gelu(x, count, 0, y);
		simd->gelu(got, count, 0, got);
		check_same("gelu in place", got, y, count);
		simd->gelu_backward(dy, x, count, 1, apart);
		simd->gelu_backward(dx, x, count, 1, dx);
		check_same("gelu's gradient in place", dx, apart, count);
		simd->tanh(x, count, y);
		memcpy(dx, dy, (size_t)count * sizeof(*dx));
		simd->tanh_backward(dy, y, count, apart);
		simd->tanh_backward(dx, y, count, dx);
		check_same("tanh's gradient in place", dx, apart, count);
		simd->tanh(x, count, x);
		check_same("tanh in place", x, y, count);
		float *all[] = { x, dy, got, y, dx, apart };
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			free(all[i]);
	}
}

/* What forward leaves for backward: the value of gelu, and its slope to the bits of the gradient of ones; in place. */
static void test_value_with_slope(void **state)
{
	enum { N = 4096 };
	float *x = check_random(N, 7), *ones = check_floats(N), *y = check_floats(N), *dx = check_floats(N);
	float *both = check_floats(N), *slope = check_floats(N), *dy = check_random(N, 8), *expected = check_floats(N);
	(void)state;
	for (int i = 0; i < N; i++) {
		x[i] *= (float)(i % 8);
		ones[i] = 1;
	}
	CHECK_EACH_ISA(simd)
	for (int approximate = 0; approximate < 2; approximate++) {
		simd->gelu(x, N, approximate, y);
		simd->gelu_backward(ones, x, N, approximate, dx);
		memcpy(slope, x, N * sizeof(*x));
		simd->gelu_slope(slope, N, approximate, both, slope);
		check_same("the value", both, y, N);
		check_same("the slope in place of x", slope, dx, N);
		simd->gelu_backward(dy, x, N, approximate, expected);
		simd->multiply(dy, slope, N, slope);
		check_same("the gradient", slope, expected, N);
	}
	float *all[] = { x, ones, y, dx, both, slope, dy, expected };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/* Every instruction set computes the same polynomials with the same roundings. */
static void test_sets_agree(void **state)
{
	enum { N = 4096 };
	float *x = check_random(N, 5), *dy = check_random(N, 6);
	float *expected = check_floats(N), *got = check_floats(N);
	(void)state;
	for (int i = 0; i < N; i++)
		x[i] *= (float)(i % 16);
	for (int form = 0; form < 5; form++) {
		CHECK_EACH_ISA(simd)
		{
			float *y = isa_ == LS_ISA_GENERIC ? expected : got;
			if (form < 2)
				simd->gelu(x, N, form, y);
			else if (form < 4)
				simd->gelu_backward(dy, x, N, form - 2, y);
			else
				simd->tanh(x, N, y);
			check_same(ls_isa_name((ls_isa)isa_), y, expected, N);
		}
	}
	free(x);
	free(dy);
	free(expected);
	free(got);
}

TEST_MAIN(test_gelu, test_tanh, test_gradients, test_ends, test_in_place, test_value_with_slope, test_sets_agree)
