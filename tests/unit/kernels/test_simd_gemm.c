/* The portable product: right over odd shapes and strides, one chain per element however rows are cut. */
#include "unit/kernels/simd_check.h"
#include "unit/test_main.h"

static const ls_gemm_shape shapes[] = {
	/* rows, depth, cols, ldx, ldw, ldy, transposed (set below), accumulate */
	{ 1, 1, 16, 1, 16, 16, 0, 0 },     { 1, 64, 64, 64, 64, 64, 0, 1 },     { 7, 9, 16, 9, 16, 16, 0, 0 },
	{ 13, 64, 64, 64, 64, 64, 0, 1 },  { 128, 64, 64, 64, 64, 64, 0, 1 },   { 128, 64, 64, 64, 64, 64, 0, 0 },
	{ 31, 27, 32, 32, 32, 32, 0, 1 },  { 25, 147, 48, 150, 49, 53, 0, 1 },  { 2, 800, 64, 800, 64, 64, 0, 0 },
	{ 300, 16, 32, 16, 64, 32, 0, 1 }, { 129, 129, 16, 144, 16, 17, 0, 1 }, { 5, 128, 64, 128, 80, 96, 0, 0 },
	{ 23, 33, 48, 33, 48, 48, 0, 0 },  { 11, 257, 32, 257, 32, 32, 0, 1 },  { 6, 12, 64, 13, 67, 71, 0, 0 },
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

typedef struct problem {
	ls_gemm_shape shape;
	int out_rows, inner;
	int64_t x_count, w_count, y_count;
	float *x, *w, *start, *expected;
	double *magnitude; /* sum |x*w|: what rounding is relative to */
} problem;

static float x_element(const problem *p, int i, int k)
{
	const int64_t at = p->shape.transposed ? (int64_t)k * p->shape.ldx + i : (int64_t)i * p->shape.ldx + k;
	return p->x[at];
}

static void problem_solve(problem *p)
{
	p->expected = check_copy(p->start, p->y_count);
	p->magnitude = calloc((size_t)p->y_count, sizeof(double));
	assert_non_null(p->magnitude);
	for (int i = 0; i < p->out_rows; i++)
		for (int j = 0; j < p->shape.cols; j++) {
			const int64_t at = (int64_t)i * p->shape.ldy + j;
			double sum = p->shape.accumulate ? p->start[at] : 0;
			p->magnitude[at] = fabs(sum);
			for (int k = 0; k < p->inner; k++) {
				double term = (double)x_element(p, i, k) * p->w[(int64_t)k * p->shape.ldw + j];
				sum += term;
				p->magnitude[at] += fabs(term);
			}
			p->expected[at] = (float)sum;
		}
}

/* Buffers end with the last element used, so that a sanitizer sees a read past it. */
static problem problem_make(ls_gemm_shape shape, int transposed, uint64_t stream)
{
	shape.transposed = transposed;
	problem p = { .shape = shape };
	p.out_rows = transposed ? shape.depth : shape.rows;
	p.inner = transposed ? shape.rows : shape.depth;
	p.x_count = (int64_t)(shape.rows - 1) * shape.ldx + shape.depth;
	p.w_count = (int64_t)(p.inner - 1) * shape.ldw + shape.cols;
	p.y_count = (int64_t)(p.out_rows - 1) * shape.ldy + shape.cols;
	p.x = check_random(p.x_count, 10 * stream);
	p.w = check_random(p.w_count, 10 * stream + 1);
	p.start = check_random(p.y_count, 10 * stream + 2);
	problem_solve(&p);
	return p;
}

static void problem_free(problem *p)
{
	free(p->x);
	free(p->w);
	free(p->start);
	free(p->expected);
	free(p->magnitude);
}

static void assert_solved(const problem *p, const float *y, int isa)
{
	for (int64_t at = 0; at < p->y_count; at++) {
		double error = fabs((double)y[at] - p->expected[at]);
		if (!(error <= 1e-6 * p->magnitude[at]))
			fail_msg("seed %d: %s %dx%dx%d transposed %d, element %lld is %.9g, expected %.9g", CHECK_SEED,
				 ls_isa_name((ls_isa)isa), p->shape.rows, p->shape.depth, p->shape.cols,
				 p->shape.transposed, (long long)at, (double)y[at], (double)p->expected[at]);
	}
}

static void test_shapes_and_strides(void **state)
{
	(void)state;
	for (int s = 0; s < 2 * SHAPES; s++) {
		problem p = problem_make(shapes[s / 2], s % 2, (uint64_t)s);
		CHECK_EACH_ISA(simd)
		{
			float *y = check_copy(p.start, p.y_count);
			simd->gemm(&p.shape, p.x, p.w, y);
			assert_solved(&p, y, isa_);
			free(y);
		}
		problem_free(&p);
	}
}

/* Every number of rows up to beyond two tiles: each has kernels of its own. */
static void test_every_row_count(void **state)
{
	(void)state;
	for (int rows = 1; rows <= 27; rows++)
		for (int cols = 16; cols <= 64; cols += 16) {
			problem p = problem_make((ls_gemm_shape){ rows, 5, cols, 5, cols, cols, 0, 1 }, 0, 1000);
			problem t = problem_make((ls_gemm_shape){ 5, rows, cols, rows, cols, cols, 0, 0 }, 1, 1001);
			CHECK_EACH_ISA(simd)
			{
				float *y = check_copy(p.start, p.y_count), *z = check_copy(t.start, t.y_count);
				simd->gemm(&p.shape, p.x, p.w, y);
				assert_solved(&p, y, isa_);
				simd->gemm(&t.shape, t.x, t.w, z);
				assert_solved(&t, z, isa_);
				free(y);
				free(z);
			}
			problem_free(&p);
			problem_free(&t);
		}
}

/* Rows of y in two calls instead of one, cut anywhere, give the same bits. */
static void test_rows_may_be_cut_anywhere(void **state)
{
	(void)state;
	problem p = problem_make((ls_gemm_shape){ 37, 150, 64, 151, 64, 64, 0, 1 }, 0, 2000);
	CHECK_EACH_ISA(simd)
	{
		float *whole = check_copy(p.start, p.y_count);
		simd->gemm(&p.shape, p.x, p.w, whole);
		for (int cut = 1; cut < p.shape.rows; cut++) {
			float *parts = check_copy(p.start, p.y_count);
			ls_gemm_shape first = p.shape, second = p.shape;
			first.rows = cut;
			second.rows -= cut;
			simd->gemm(&second, p.x + cut * p.shape.ldx, p.w, parts + cut * p.shape.ldy);
			simd->gemm(&first, p.x, p.w, parts);
			check_same("rows in two parts", parts, whole, p.y_count);
			free(parts);
		}
		free(whole);
	}
	problem_free(&p);
}

/* The inner dimension in two accumulating calls gives the same bits: the chain goes on from y. */
static void test_inner_dimension_continues_the_chain(void **state)
{
	(void)state;
	problem p = problem_make((ls_gemm_shape){ 200, 21, 48, 21, 48, 48, 0, 0 }, 1, 3000);
	CHECK_EACH_ISA(simd)
	{
		float *whole = check_copy(p.start, p.y_count);
		simd->gemm(&p.shape, p.x, p.w, whole);
		for (int cut = 1; cut < p.shape.rows; cut += 13) {
			float *parts = check_floats(p.y_count);
			ls_gemm_shape first = p.shape, second = p.shape;
			first.rows = cut;
			second.rows -= cut;
			second.accumulate = 1;
			simd->gemm(&first, p.x, p.w, parts);
			simd->gemm(&second, p.x + cut * p.shape.ldx, p.w + cut * p.shape.ldw, parts);
			check_same("inner dimension in two parts", parts, whole, p.y_count);
			free(parts);
		}
		free(whole);
	}
	problem_free(&p);
}

/* One fused multiply-add per term and the same chain in every instruction set: the same bits. */
static void test_sets_agree_exactly(void **state)
{
	(void)state;
	for (int s = 0; s < 2 * SHAPES; s++) {
		problem p = problem_make(shapes[s / 2], s % 2, (uint64_t)s);
		float *expected = check_copy(p.start, p.y_count);
		ls_simd_of(LS_ISA_GENERIC)->gemm(&p.shape, p.x, p.w, expected);
		CHECK_EACH_ISA(simd)
		{
			float *y = check_copy(p.start, p.y_count);
			simd->gemm(&p.shape, p.x, p.w, y);
			check_same(ls_isa_name((ls_isa)isa_), y, expected, p.y_count);
			free(y);
		}
		free(expected);
		problem_free(&p);
	}
}

/* Weights turned in registers: in every instruction set the bits of the product with weights that need no turning. */
static void test_turned_weights(void **state)
{
	(void)state;
	for (int rows = 1; rows <= LS_GEMM_TURNED_ROWS; rows++)
		for (int cols = 16; cols <= 64; cols += 16)
			for (int form = 0; form < 4; form++) {
				int depth = form / 2 ? 64 : 12;
				ls_gemm_shape shape = { rows, depth, cols, depth + 3, cols, cols + 5, 0, form % 2 };
				problem p = problem_make(shape, 0, (uint64_t)(4000 + form));
				float *expected = check_copy(p.start, p.y_count);
				ls_simd_of(LS_ISA_GENERIC)->gemm(&p.shape, p.x, p.w, expected);
				shape.ldw = depth + 2;
				float *turned = check_random((int64_t)(cols - 1) * shape.ldw + depth, 4100);
				for (int k = 0; k < depth; k++)
					for (int c = 0; c < cols; c++)
						turned[c * shape.ldw + k] = p.w[k * p.shape.ldw + c];
				CHECK_EACH_ISA(simd)
				{
					float *y = check_copy(p.start, p.y_count);
					simd->gemm_turned(&shape, p.x, turned, y);
					check_same(ls_isa_name((ls_isa)isa_), y, expected, p.y_count);
					free(y);
				}
				free(expected);
				free(turned);
				problem_free(&p);
			}
}

TEST_MAIN(test_shapes_and_strides, test_every_row_count, test_rows_may_be_cut_anywhere,
	  test_inner_dimension_continues_the_chain, test_sets_agree_exactly, test_turned_weights)
