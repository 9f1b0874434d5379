/*
 * Faults that are injected: what the environment says, and that nodes and times are drawn as they should be.
 */
#include <math.h>

#include "cluster/faults.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

static void test_parse(void **state)
{
	static const char *const wrong[] = { "",      "30",     "30:7",    "30:7:5:1", "30:7:5 ", "x:7:5",
					     "0:7:5", "-1:7:5", "inf:7:5", "nan:7:5",  "30:7:x",  ":7:5" };
	ls_faults faults;

	(void)state;
	assert_ok(ls_faults_parse(&faults, "2.5:18446744073709551615:5"));
	assert_true(faults.every == 2.5 && faults.seed == UINT64_MAX && faults.count == 5);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ls_faults_parse(&faults, wrong[i]), LS_EINVALID);
	assert_true(faults.every == 2.5); /* set only on success */
	assert_ok(ls_faults_parse(&faults, NULL));
	assert_true(faults.every == 0);
	assert_int_equal(ls_faults_draw(&faults, 1, 3).node, -1);
}

static void test_which_starts(void **state)
{
	const ls_faults faults = { .every = 30, .seed = 7, .count = 5 };

	(void)state;
	assert_int_equal(ls_faults_draw(&faults, 0, 3).node, -1);
	for (uint64_t start = 1; start <= 5; start++)
		assert_in_range(ls_faults_draw(&faults, start, 3).node, 0, 2);
	assert_int_equal(ls_faults_draw(&faults, 6, 3).node, -1);
}

/* The same on all nodes; another seed and another start are another fault. */
static void test_what_it_depends_on(void **state)
{
	const ls_faults a = { .every = 30, .seed = 7, .count = 9 }, b = { .every = 30, .seed = 8, .count = 5 };

	(void)state;
	assert_true(ls_faults_draw(&a, 2, 3).after == ls_faults_draw(&a, 2, 3).after);
	assert_true(ls_faults_draw(&a, 2, 3).after != ls_faults_draw(&a, 3, 3).after);
	assert_true(ls_faults_draw(&a, 2, 3).after != ls_faults_draw(&b, 2, 3).after);
}

/* Exponential: mean and deviation are `every`, 1/e of the times are above it; and every node has its turn. */
static void test_distribution(void **state)
{
	enum { DRAWS = 100000, NODES = 5 };
	const ls_faults faults = { .every = 30, .seed = 1, .count = DRAWS };
	double sum = 0, squares = 0;
	int above = 0, hit[NODES] = { 0 };

	(void)state;
	for (uint64_t start = 1; start <= DRAWS; start++) {
		ls_fault fault = ls_faults_draw(&faults, start, NODES);
		assert_true(fault.after >= 0 && isfinite(fault.after));
		sum += fault.after;
		squares += fault.after * fault.after;
		above += fault.after > 30;
		hit[fault.node]++;
	}
	double mean = sum / DRAWS;
	assert_true(fabs(mean - 30) < 0.5 && fabs(sqrt(squares / DRAWS - mean * mean) - 30) < 0.5);
	assert_true(fabs(above / (double)DRAWS - exp(-1)) < 0.01);
	for (int node = 0; node < NODES; node++)
		assert_true(fabs(hit[node] / (double)DRAWS - 1.0 / NODES) < 0.01);
}

TEST_MAIN(test_parse, test_which_starts, test_what_it_depends_on, test_distribution)
