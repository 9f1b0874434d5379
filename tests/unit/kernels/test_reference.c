/* The references against numbers worked out by hand, and their gradients against finite differences. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

/* Two 3x3 images' worth by hand: x = 1..9, filter (1 2; 3 4), bias 10. */
static void test_convolution_by_hand(void **state)
{
	(void)state;
	ls_reference_window w = { 1, 1, 1, 3, 3, 0, 0, 2, 2, 1, 0 };
	const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, weight[] = { 1, 2, 3, 4 }, bias[] = { 10 };
	const float expected[] = { 47, 57, 77, 87 }, ones[] = { 1, 1, 1, 1 };
	const float expected_dx[] = { 1, 3, 2, 4, 10, 6, 3, 7, 4 }, expected_dw[] = { 12, 16, 24, 28 };
	float y[4], dx[9], dw[4], db[1];
	ls_reference_window_finish(&w);
	assert_int_equal(w.out_h, 2);
	ls_reference_conv(&w, x, weight, bias, y);
	check_same("convolution", y, expected, 4);
	ls_reference_conv_backward_data(&w, ones, weight, dx);
	check_same("backward data", dx, expected_dx, 9);
	ls_reference_conv_backward_weights(&w, x, ones, dw, db);
	check_same("backward weights", dw, expected_dw, 4);
	assert_true(db[0] == 4);
}

static double dot(const float *a, const float *b, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += (double)a[i] * b[i];
	return sum;
}

/* Convolution is linear in x and in the weights: <conv(x, w), dy> = <x, dx> = <w, dw>. */
static void test_convolution_gradients_are_adjoint(void **state)
{
	(void)state;
	const ls_reference_window cases[] = { { 2, 3, 4, 5, 6, 0, 0, 3, 3, 2, 1 },
					      { 1, 1, 5, 7, 7, 0, 0, 5, 2, 1, 2 },
					      { 3, 2, 2, 1, 1, 0, 0, 3, 3, 2, 1 },
					      { 2, 4, 3, 8, 5, 0, 0, 1, 1, 2, 0 } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ls_reference_window w = cases[i];
		ls_reference_window_finish(&w);
		const int64_t in = (int64_t)w.n * w.in_c * w.in_h * w.in_w,
			      out = (int64_t)w.n * w.out_c * w.out_h * w.out_w;
		const int64_t taps = (int64_t)w.out_c * w.in_c * w.kernel_h * w.kernel_w;
		float *x = check_random(in, 1), *weight = check_random(taps, 2), *dy = check_random(out, 3);
		float *y = check_floats(out), *dx = check_floats(in), *dw = check_floats(taps);
		ls_reference_conv(&w, x, weight, NULL, y);
		ls_reference_conv_backward_data(&w, dy, weight, dx);
		ls_reference_conv_backward_weights(&w, x, dy, dw, NULL);
		const double product = dot(y, dy, out);
		assert_true(fabs(product - dot(x, dx, in)) < 1e-4);
		assert_true(fabs(product - dot(weight, dw, taps)) < 1e-4);
		float *all[] = { x, weight, dy, y, dx, dw };
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			free(all[k]);
	}
}

static void test_linear_by_hand(void **state)
{
	(void)state;
	const float x[] = { 1, 2, 3, 4, 5, 6 }, weight[] = { 1, 0, -1, 2, 1, 0 }, bias[] = { 1, 2 },
		    dy[] = { 1, 2, 3, 4 };
	const float expected[] = { -1, 6, -1, 15 }, expected_dx[] = { 5, 2, -1, 11, 4, -3 };
	const float expected_dw[] = { 13, 17, 21, 18, 24, 30 }, expected_db[] = { 4, 6 };
	float y[4], dx[6], dw[6], db[2];
	ls_reference_linear(2, 3, 2, x, weight, bias, y);
	check_same("linear", y, expected, 4);
	ls_reference_linear_backward(2, 3, 2, x, weight, dy, dx, dw, db);
	check_same("linear dx", dx, expected_dx, 6);
	check_same("linear dweight", dw, expected_dw, 6);
	check_same("linear dbias", db, expected_db, 2);
}

static double norm_value(const ls_reference_norm *norm, const float *x, const float *scale, const float *shift,
			 const float *dy)
{
	float mean[3], variance[3], y[24];
	ls_reference_batch_norm(norm, x, scale, shift, mean, variance, y);
	return dot(y, dy, 24);
}

static void test_batch_norm_by_differences(void **state)
{
	(void)state;
	const ls_reference_norm norm = { .n = 4, .c = 3, .positions = 2, .epsilon = 1e-3 };
	float *x = check_random(24, 1), *dy = check_random(24, 2), *scale = check_random(3, 3),
	      *shift = check_random(3, 4);
	float dx[24], dscale[3], dshift[3];
	const float step = 0.01f;
	ls_reference_batch_norm_backward(&norm, x, scale, dy, dx, dscale, dshift);
	for (int k = 0; k < 30; k++) {
		float *at = k < 24 ? &x[k] : k < 27 ? &scale[k - 24] : &shift[k - 27];
		const float got = k < 24 ? dx[k] : k < 27 ? dscale[k - 24] : dshift[k - 27], kept = *at;
		*at = kept + step;
		double up = norm_value(&norm, x, scale, shift, dy);
		*at = kept - step;
		double down = norm_value(&norm, x, scale, shift, dy);
		*at = kept;
		assert_true(fabs((up - down) / (2 * (double)step) - got) < 2e-3 * (1 + fabs((double)got)));
	}
	free(x);
	free(dy);
	free(scale);
	free(shift);
}

/* x = 1..16 on 4x4, 3x3 windows of stride 2 with padding 1. */
static void test_pools_by_hand(void **state)
{
	(void)state;
	ls_reference_window w = { 1, 1, 1, 4, 4, 0, 0, 3, 3, 2, 1 };
	float x[16], y[4], dx[16], dy[] = { 1, 2, 3, 4 }, nine[] = { 9, 9, 9, 9 };
	uint8_t arg[4];
	const float maxima[] = { 6, 8, 14, 16 }, means[] = { 14.0f / 9, 30.0f / 9, 57.0f / 9, 99.0f / 9 };
	for (int i = 0; i < 16; i++)
		x[i] = (float)(i + 1);
	ls_reference_window_finish(&w);
	ls_reference_max_pool(&w, x, y, arg);
	check_same("max pool", y, maxima, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(arg[i], 8);
	ls_reference_max_pool_backward(&w, dy, arg, dx);
	assert_true(dx[5] == 1 && dx[7] == 2 && dx[13] == 3 && dx[15] == 4 && dx[0] == 0);
	ls_reference_avg_pool(&w, x, y);
	check_close("avg pool", y, means, 4, 1e-6, 1);
	ls_reference_avg_pool_backward(&w, nine, dx);
	assert_true(dx[0] == 1 && dx[1] == 2 && dx[5] == 4 && dx[15] == 1);
}

static void test_cross_entropy_by_hand(void **state)
{
	(void)state;
	const float logits[] = { 0, 0, logf(2), 5, 5, 1 };
	const int32_t labels[] = { 2, 1 };
	float loss[2], d[6];
	uint8_t correct[2];
	ls_reference_softmax_xent(2, 3, logits, labels, loss, correct, d);
	assert_true(fabs(loss[0] - log(2)) < 1e-6);
	assert_true(fabs(d[0] - 0.25) < 1e-6 && fabs(d[2] + 0.5) < 1e-6);
	assert_true(correct[0] == 1 && correct[1] == 0); /* the first of two maxima is not the label */
}

TEST_MAIN(test_convolution_by_hand, test_convolution_gradients_are_adjoint, test_linear_by_hand,
	  test_batch_norm_by_differences, test_pools_by_hand, test_cross_entropy_by_hand)
