/*
 * The rounding error of Winograd's algorithm, against convolution in double.
 */
#include "unit/kernels/conv_kit.h"

#include "unit/test_main.h"

/* The largest error of `got` beside exact values, in units of the largest of them. */
static double error_of(const float *got, const double *exact, int64_t count)
{
	double error = 0, largest = 0;
	for (int64_t i = 0; i < count; i++) {
		double off = fabs((double)got[i] - exact[i]), size = fabs(exact[i]);
		error = off > error ? off : error; /* not fmax(): gcc 12 for arm64 cannot compile that loop */
		largest = size > largest ? size : largest;
	}
	return error / largest;
}

static const conv_shape error_table[] = {
	{ 64, 64, 14, 14, 3, 3, 1, 1, 4 },
	{ 256, 64, 7, 7, 3, 3, 1, 1, 8 },
	{ 512, 16, 6, 6, 3, 3, 1, 1, 4 },
};

/* y, dx and dw in double: what they would be without rounding, for the size of our errors. */
static void exact_conv(const conv_kit *k, double *y, double *dx, double *dw)
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
static void errors_of(const conv_shape *s, ls_conv_algorithm algorithm, double error[3])
{
	conv_kit k;
	conv_made m;
	conv_kit_init(&k, s, algorithm, NULL, 0);
	int64_t in = panels_dense(&k.in), out = panels_dense(&k.out), weights = (int64_t)ls_param_elements(&k.weight);
	double *exact = calloc((size_t)(in + out + weights), sizeof(*exact));
	float *y = check_floats(out), *dx = check_floats(in), *dw = check_floats(weights);

	assert_non_null(exact);
	exact_conv(&k, exact, exact + out, exact + out + in);
	conv_run(&k, &m, 1, 0, 0);
	panels_unpack(&k.out, m.y, y);
	panels_unpack(&k.in, m.dx, dx);
	ls_param_export(&k.weight, LS_STORE_REACHABLE, m.dw, dw);
	error[0] = error_of(y, exact, out);
	error[1] = error_of(dx, exact + out, in);
	error[2] = error_of(dw, exact + out + in, weights);
	conv_made_release(&m);
	conv_kit_release(&k);
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

TEST_MAIN(test_winograd_error)
