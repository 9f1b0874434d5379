/*
 * Both backends of the small product against sums in double, and what the rest relies on: an element's value does not
 * depend on how rows are cut, nor on the other rows of the product.
 */
#include "unit/kernels/simd_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/gemm.h"
#include "kernels/linear.h"

static const char *const backends[] = { "xsmm", "portable" };
static const int rows_list[] = { 1, 2, 3, 5, 7, 13, 16, 33, 64, 65, 100, 128, 256 };
static const int depth_list[] = { 1, 3, 9, 16, 32, 49, 64, 147, 784 };
static const int cols_list[] = { 16, 32, 64 };
/* Products up to the largest that training uses, LS_LINEAR_TILE rows of a linear layer's block, 256 x 64 x 64. */
enum { LARGEST = LS_LINEAR_TILE * 64 * 64 };
#define COUNT(list) (int)(sizeof(list) / sizeof(list)[0])

/* 0 when this machine or build lacks it. */
static int choose(int backend)
{
	setenv("LOCKSTEP_KERNELS", backends[backend], 1);
	if (ls_gemm_check() != LS_OK) {
		print_message("# %s\n", ls_last_error());
		return 0;
	}
	assert_string_equal(ls_gemm_backend(), backends[backend]);
	return 1;
}

/* Rows and columns of what a product writes. */
static int out_rows(const ls_gemm_shape *s)
{
	return s->transposed ? s->depth : s->rows;
}

typedef struct operands {
	float *x, *w, *start, *got;
	int64_t x_floats, w_floats, y_floats;
} operands;

static operands make_operands(const ls_gemm_shape *s)
{
	operands o = { .x_floats = (int64_t)s->rows * s->ldx, .y_floats = (int64_t)out_rows(s) * s->ldy };
	o.w_floats = (int64_t)(s->transposed ? s->rows : s->depth) * s->ldw;
	o.x = check_random(o.x_floats, 1);
	o.w = check_random(o.w_floats, 2);
	o.start = check_random(o.y_floats, 3);
	o.got = check_copy(o.start, o.y_floats);
	return o;
}

static void free_operands(operands *o)
{
	free(o->x);
	free(o->w);
	free(o->start);
	free(o->got);
}

static double element(const ls_gemm_shape *s, const operands *o, int r, int c, double *size)
{
	int inner = s->transposed ? s->rows : s->depth;
	double sum = s->accumulate ? o->start[(int64_t)r * s->ldy + c] : 0;
	*size = fabs(sum);
	for (int k = 0; k < inner; k++) {
		double x = s->transposed ? o->x[(int64_t)k * s->ldx + r] : o->x[(int64_t)r * s->ldx + k];
		double term = x * o->w[(int64_t)k * s->ldw + c];
		sum += term;
		*size += fabs(term);
	}
	return sum;
}

/* Elements are right; what lies between rows is untouched. */
static void check_product(const ls_gemm_shape *s)
{
	ls_gemm gemm;
	operands o = make_operands(s);
	assert_int_equal(ls_gemm_make(&gemm, s), LS_OK);
	ls_gemm_run(&gemm, o.x, o.w, o.got);
	for (int r = 0; r < out_rows(s); r++)
		for (int c = 0; c < s->ldy; c++) {
			int64_t at = (int64_t)r * s->ldy + c;
			double size = 0, want = c < s->cols ? element(s, &o, r, c, &size) : o.start[at];
			if (!(fabs(o.got[at] - want) <= 3e-7 * size))
				fail_msg("%s: rows %d, depth %d, cols %d, strides %d %d %d%s%s: element (%d, %d) is "
					 "%.9g, "
					 "expected %.9g",
					 ls_gemm_backend(), s->rows, s->depth, s->cols, s->ldx, s->ldw, s->ldy,
					 s->transposed ? ", transposed" : "", s->accumulate ? ", accumulating" : "", r,
					 c, (double)o.got[at], want);
		}
	free_operands(&o);
}

static void test_products(void **state)
{
	(void)state;
	for (int b = 0; b < 2; b++) {
		if (!choose(b))
			continue;
		for (int r = 0; r < COUNT(rows_list); r++)
			for (int d = 0; d < COUNT(depth_list); d++)
				for (int form = 0; form < 4; form++) {
					int cols = cols_list[(r + d) % 3], wide = (r + d + form) % 2;
					int depth = depth_list[d], pad = (depth + 15) / 16 * 16;
					ls_gemm_shape s = { .rows = rows_list[r],
							    .depth = depth,
							    .cols = cols,
							    .ldx = wide ? pad : depth,
							    .ldw = wide ? cols + 16 : cols,
							    .ldy = wide ? cols + 32 : cols,
							    .transposed = form / 2,
							    .accumulate = form % 2 };
					if ((int64_t)s.rows * depth * cols <= 2000000)
						check_product(&s);
				}
	}
}

/* Rows [first, first + count) of a product made for that many rows. */
static void run_rows(ls_gemm_shape s, const operands *o, int first, int count, float *out)
{
	ls_gemm gemm;
	s.rows = count;
	assert_int_equal(ls_gemm_make(&gemm, &s), LS_OK);
	ls_gemm_run(&gemm, o->x + (int64_t)first * s.ldx, o->w, out + (int64_t)first * s.ldy);
}

static void check_cuts(const ls_gemm_shape *s)
{
	static const int cuts[] = { 1, 2, 3, 5, 7, 12, 16, 33, 64 };
	char what[160];
	operands o = make_operands(s);
	run_rows(*s, &o, 0, s->rows, o.got);
	for (int c = 0; c < COUNT(cuts); c++) {
		float *parts = check_copy(o.start, o.y_floats);
		for (int first = 0; first < s->rows; first += cuts[c])
			run_rows(*s, &o, first, s->rows - first < cuts[c] ? s->rows - first : cuts[c], parts);
		snprintf(what, sizeof(what), "%s, depth %d, cols %d%s, %d rows in cuts of %d", ls_gemm_backend(),
			 s->depth, s->cols, s->accumulate ? ", accumulating" : "", s->rows, cuts[c]);
		check_same(what, parts, o.got, o.y_floats);
		free(parts);
	}
	free_operands(&o);
}

static void test_cuts(void **state)
{
	static const int rows[] = { 7, 64, 100, 129 };
	(void)state;
	for (int b = 0; b < 2; b++) {
		if (!choose(b))
			continue;
		for (int r = 0; r < COUNT(rows); r++)
			for (int d = 0; d < COUNT(depth_list); d++)
				for (int k = 0; k < 6; k++) {
					int cols = cols_list[k / 2], depth = depth_list[d],
					    ldx = (depth + 15) / 16 * 16;
					check_cuts(&(ls_gemm_shape){ .rows = rows[r],
								     .depth = depth,
								     .cols = cols,
								     .ldx = ldx,
								     .ldw = cols,
								     .ldy = cols,
								     .accumulate = k % 2 });
				}
	}
}

/* A weight gradient summed block after block of samples is the sum in one product: the inner index in order. */
static void test_blocks_of_samples(void **state)
{
	(void)state;
	for (int b = 0; b < 2; b++) {
		if (!choose(b))
			continue;
		ls_gemm_shape s = {
			.rows = 128, .depth = 64, .cols = 64, .ldx = 64, .ldw = 64, .ldy = 64, .transposed = 1
		};
		operands o = make_operands(&s);
		ls_gemm gemm;
		assert_int_equal(ls_gemm_make(&gemm, &s), LS_OK);
		ls_gemm_run(&gemm, o.x, o.w, o.got);
		s.rows = 32;
		float *parts = check_floats(o.y_floats);
		for (int block = 0; block < 4; block++) {
			s.accumulate = block > 0;
			assert_int_equal(ls_gemm_make(&gemm, &s), LS_OK);
			ls_gemm_run(&gemm, o.x + block * 32 * 64, o.w + block * 32 * 64, parts);
		}
		check_close(ls_gemm_backend(), parts, o.got, o.y_floats, 1e-5, 10);
		free(parts);
		free_operands(&o);
	}
}

static uint64_t hash_product(uint64_t hash, const ls_gemm_shape *s)
{
	ls_gemm gemm;
	operands o = make_operands(s);
	assert_int_equal(ls_gemm_make(&gemm, s), LS_OK);
	ls_gemm_run(&gemm, o.x, o.w, o.got);
	const unsigned char *bytes = (const unsigned char *)o.got;
	for (size_t i = 0; i < (size_t)o.y_floats * sizeof(float); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	free_operands(&o);
	return hash;
}

/* Of products of many shapes, by one backend. */
static uint64_t hash_products(int backend)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	assert_true(choose(backend));
	for (int r = 0; r < COUNT(rows_list); r++)
		for (int d = 0; d < COUNT(depth_list); d++)
			for (int form = 0; form < 12; form++) {
				int cols = cols_list[form / 4], depth = depth_list[d];
				ls_gemm_shape s = { .rows = rows_list[r],
						    .depth = depth,
						    .cols = cols,
						    .ldx = (depth + 15) / 16 * 16,
						    .ldw = cols,
						    .ldy = cols,
						    .transposed = form / 2 % 2,
						    .accumulate = form % 2 };
				if ((int64_t)s.rows * depth * cols <= LARGEST)
					hash = hash_product(hash, &s);
			}
	return hash;
}

/* The same of this program under another instruction set: a process keeps to one. */
static uint64_t hash_in_child(const char *isa, int backend)
{
	int ends[2], status = 1;
	uint64_t hash = 0;
	assert_int_equal(pipe(ends), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		setenv("LOCKSTEP_ISA", isa, 1);
		execl("/proc/self/exe", "test_gemm", "--hash", backends[backend], (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	FILE *from = fdopen(ends[0], "r");
	assert_non_null(from);
	assert_int_equal(fscanf(from, "%" SCNx64, &hash), 1);
	fclose(from);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return hash;
}

/* Every instruction set, and every backend on it, gives the same bits: nodes may mix them. */
static void test_sets_agree(void **state)
{
	(void)state;
	const uint64_t expected = hash_in_child("generic", 1);
	for (int b = 0; b < 2; b++)
		for (int isa = 0; isa < LS_ISA_COUNT && choose(b); isa++)
			if (ls_isa_has(isa) && (b == 1 || isa != LS_ISA_GENERIC))
				assert_int_equal(hash_in_child(ls_isa_name((ls_isa)isa), b), expected);
}

/* libxsmm sums in index order in every shape that it is asked for: rows of all numbers that a tail can have, the depths
 * and widths of the models, strides of packed and of wide rows. */
static void test_xsmm_keeps_the_order(void **state)
{
	static const int depths[] = {
		1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 192, 256, 784
	};
	static const int columns[] = { 16, 32, 48, 64, 128 };
	static const int many[] = { 64, 98, 128, 256 }; /* rows of tiles, after those of all tails */
	enum { TAILS = 40, ROWS = TAILS + COUNT(many) };
	(void)state;
	if (!choose(0))
		skip();
	for (int i = 0; i < ROWS * COUNT(depths) * COUNT(columns); i++) {
		const int rows = i % ROWS < TAILS ? i % ROWS + 1 : many[i % ROWS - TAILS],
			  depth = depths[i / ROWS % COUNT(depths)], cols = columns[i / ROWS / COUNT(depths)];
		for (int form = 0; form < 4; form++) {
			const int inner = form / 2 ? rows : depth, other = form / 2 ? depth : rows;
			ls_gemm_shape s = { .rows = form / 2 ? inner : other,
					    .depth = form / 2 ? other : inner,
					    .ldx = (form / 2 ? other : inner) + i % 3 * 16,
					    .cols = cols,
					    .ldw = cols + i % 2 * 16,
					    .ldy = cols + i % 5 * 16,
					    .transposed = form / 2,
					    .accumulate = form % 2 };
			if ((int64_t)rows * depth * cols > LARGEST)
				continue;
			ls_gemm gemm;
			operands o = make_operands(&s);
			float *expected = check_copy(o.got, o.y_floats);
			assert_int_equal(ls_gemm_make(&gemm, &s), LS_OK);
			ls_gemm_run(&gemm, o.x, o.w, o.got);
			ls_simd_of(ls_isa_get())->gemm(&s, o.x, o.w, expected);
			check_same("libxsmm and the portable product", o.got, expected, o.y_floats);
			free(expected);
			free_operands(&o);
		}
	}
}

static void test_unknown_backend(void **state)
{
	(void)state;
	setenv("LOCKSTEP_KERNELS", "portible", 1);
	assert_int_equal(ls_gemm_check(), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "LOCKSTEP_KERNELS"));
	assert_non_null(strstr(ls_last_error(), "portable"));
	setenv("LOCKSTEP_KERNELS", "", 1); /* as good as unset */
	assert_int_equal(ls_gemm_check(), LS_OK);
	unsetenv("LOCKSTEP_KERNELS");
	assert_int_equal(ls_gemm_check(), LS_OK);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--hash") == 0) {
		printf("%" PRIx64 "\n", hash_products(strcmp(argv[2], backends[0]) != 0));
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),          cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_blocks_of_samples), cmocka_unit_test(test_sets_agree),
		cmocka_unit_test(test_unknown_backend),   cmocka_unit_test(test_xsmm_keeps_the_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
