/* Bias, rectifier, column sums, additions and transposes over odd counts. */
#include "unit/kernels/simd_check.h"

#include "support/reference.h"
#include "unit/test_main.h"

static const int64_t counts[] = { 1, 3, 15, 16, 17, 31, 64, 1000, 4097 };
enum { COUNTS = sizeof(counts) / sizeof(*counts) };

static void test_tables_are_whole(void **state)
{
	(void)state;
	assert_ptr_equal(ls_simd_get(), ls_simd_of((int)ls_isa_get()));
	assert_null(ls_simd_of(LS_ISA_COUNT));
	assert_null(ls_simd_of(-1));
	CHECK_EACH_ISA(simd)
	{
		void (*functions[sizeof(*simd) / sizeof(void (*)(void))])(void);
		ls_simd filled = *simd;
		filled.bf16.turned = filled.bf16_amx.turned; /* bf16 has none: its products take a transposed operand */
		memcpy(functions, &filled, sizeof(functions));
		for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			assert_true(functions[i] != NULL);
	}
}

static void test_bias_and_rectifier(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int form = 0; form < 4; form++)
		for (int panel = 16; panel <= 64; panel += 16)
			for (int64_t rows = 1; rows <= 9; rows += 4) {
				float *y = check_random_panel(rows, panel, panel - 5, 1),
				      *expected = check_floats(rows * panel);
				float *bias = check_random_panel(1, panel, panel - 5, 2);
				for (int64_t i = 0; i < rows * panel; i++) {
					float t = form % 2 ? y[i] + bias[i % panel] : y[i];
					expected[i] = form / 2 && t < 0 ? 0 : t;
				}
				simd->bias_act(y, rows, panel, form % 2 ? bias : NULL, form / 2);
				check_same("bias_act", y, expected, rows * panel);
				free(y);
				free(expected);
				free(bias);
			}
}

/* A NaN must reach the loss: no rectifier may turn it into a zero. */
static void test_rectifiers_keep_nan(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	{
		float y[16] = { 0 }, zero[16] = { 0 }, one[16], out[16];
		for (int i = 0; i < 16; i++)
			one[i] = 1;
		y[3] = NAN;
		simd->normalize(y, NULL, 1, 16, one, zero, 1, out);
		assert_true(isnan(out[3]));
		simd->add(y, zero, 16, 1, out);
		assert_true(isnan(out[3]));
		simd->bias_act(y, 1, 16, NULL, 1);
		assert_true(isnan(y[3]));
	}
}

static void check_relu_backward(const ls_simd *simd, int64_t count)
{
	float *dy = check_random(count, 10), *y = check_random(count, 11), *g = check_floats(count);
	float *expected = check_floats(count);
	y[count / 2] = 0; /* not greater than zero */
	ls_reference_relu_backward(count, y, dy, expected);
	simd->relu_backward(dy, y, count, g);
	check_same("relu_backward", g, expected, count);
	simd->relu_backward(dy, y, count, dy);
	check_same("relu_backward in place", dy, expected, count);
	free(dy);
	free(y);
	free(g);
	free(expected);
}

static void check_add(const ls_simd *simd, int64_t count, int relu)
{
	float *a = check_random(count, 20), *b = check_random(count, 21), *y = check_floats(count);
	float *expected = check_floats(count);
	for (int64_t i = 0; i < count; i++)
		y[i] = a[i] + b[i];
	if (relu)
		ls_reference_relu(count, y, expected);
	else
		memcpy(expected, y, (size_t)count * sizeof(float));
	simd->add(a, b, count, relu, y);
	check_same("add", y, expected, count);
	simd->add(a, b, count, relu, b);
	check_same("add over its second term", b, expected, count);
	free(a);
	free(b);
	free(y);
	free(expected);
}

static void check_accumulate(const ls_simd *simd, int64_t count)
{
	float *y = check_random(count, 22), *x = check_random(count, 23), *expected = check_floats(count);
	for (int64_t i = 0; i < count; i++)
		expected[i] = y[i] + x[i];
	simd->accumulate(y, x, count);
	check_same("accumulate", y, expected, count);
	free(y);
	free(x);
	free(expected);
}

static void test_arrays(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int i = 0; i < COUNTS; i++) {
		check_relu_backward(simd, counts[i]);
		check_add(simd, counts[i], 0);
		check_add(simd, counts[i], 1);
		check_accumulate(simd, counts[i]);
	}
}

static void test_column_sums(void **state)
{
	(void)state;
	for (int panel = 16; panel <= 64; panel += 16)
		for (int64_t rows = 1; rows <= 200; rows = 3 * rows + 1) {
			float *x = check_random_panel(rows, panel, panel - 3, 30), first[64], sums[64], expected[64];
			for (int c = 0; c < panel; c++) {
				double sum = 0;
				for (int64_t r = 0; r < rows; r++)
					sum += x[r * panel + c];
				expected[c] = (float)sum;
			}
			ls_simd_of(LS_ISA_GENERIC)->column_sums(x, rows, panel, first);
			CHECK_EACH_ISA(simd)
			{
				simd->column_sums(x, rows, panel, sums);
				check_close("column_sums", sums, expected, panel, 1e-6, (double)rows);
				check_same("column_sums of two sets", sums, first, panel);
				assert_true(sums[panel - 1] == 0);
			}
			free(x);
		}
}

static void check_transpose(const ls_simd *simd, int rows, int cols, int ld_in, int ld_out)
{
	const int64_t in_count = (int64_t)(rows - 1) * ld_in + cols, out_count = (int64_t)(cols - 1) * ld_out + rows;
	float *in = check_random(in_count, 40), *out = check_random(out_count, 41),
	      *expected = check_copy(out, out_count);
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++)
			expected[(int64_t)c * ld_out + r] = in[(int64_t)r * ld_in + c];
	simd->transpose(in, rows, cols, ld_in, out, ld_out);
	check_same("transpose", out, expected, out_count);
	free(in);
	free(out);
	free(expected);
}

static void test_transpose(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	for (int rows = 16; rows <= 64; rows += 16)
		for (int cols = 16; cols <= 80; cols += 16) {
			check_transpose(simd, rows, cols, cols, rows);
			check_transpose(simd, rows, cols, cols + 3, rows + 5);
		}
}

TEST_MAIN(test_bias_and_rectifier, test_rectifiers_keep_nan, test_arrays, test_column_sums, test_transpose,
	  test_tables_are_whole)
