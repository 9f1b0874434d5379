/*
 * Published figures: whole, and as consistent as they were published.
 */
#include "tools/results/published.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int by_number(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

static void test_rows(void **state)
{
	static const size_t expected[LS_PUBLISHED_SEEDS] = { 16, 36, 12, 61, 18 };
	size_t count, seen[LS_PUBLISHED_SEEDS] = { 0 };
	const ls_published *rows = ls_published_rows(&count);
	(void)state;
	for (size_t i = 0; i < count; i++) {
		const ls_published *r = &rows[i];
		assert_in_range(r->seed, 0, LS_PUBLISHED_SEEDS - 1);
		seen[r->seed]++;
		assert_true(r->nodes >= 1 && r->devices >= r->nodes && r->batch > 0);
		assert_true((r->rate > 0) != (r->wall_s > 0));
		int devices = 0, nodes = 0;
		for (const char *at = r->shape; at; at = strchr(at, '+'), at = at ? at + 1 : NULL, nodes++)
			devices += atoi(at);
		assert_int_equal(devices, r->devices);
		assert_int_equal(nodes, r->nodes);
	}
	for (int seed = 0; seed < LS_PUBLISHED_SEEDS; seed++) {
		assert_int_equal(seen[seed], expected[seed]);
		assert_non_null(ls_published_title(seed));
	}
	assert_null(ls_published_title(LS_PUBLISHED_SEEDS));
}

/* Seed 000 takes medians of seven and gives speedups over one device of the same batch. */
static void test_medians(void **state)
{
	size_t count;
	const ls_published *rows = ls_published_rows(&count);
	(void)state;
	for (size_t i = 0; i < count && rows[i].seed == 0; i++) {
		double sorted[LS_PUBLISHED_REPEATS];
		if (rows[i].repeats[0] == 0)
			continue;
		memcpy(sorted, rows[i].repeats, sizeof(sorted));
		qsort(sorted, LS_PUBLISHED_REPEATS, sizeof(*sorted), by_number);
		assert_true(fabs(sorted[3] - rows[i].rate) < 1e-9);
		for (size_t k = 0; k < count && rows[k].seed == 0; k++)
			if (rows[k].devices == 1 && rows[k].batch == rows[i].batch)
				assert_true(fabs(rows[i].rate / rows[k].rate - rows[i].speedup) < 0.0101);
	}
}

static void test_sizes(void **state)
{
	(void)state;
	assert_true(fabs(ls_published_gradient_bytes("resnet18") - 44.7e6) < 1e5);
	assert_true(fabs(ls_published_gradient_bytes("bert-base") - 440e6) < 5e6);
	assert_true(ls_published_gradient_bytes("transformer") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_medians),
					    cmocka_unit_test(test_sizes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
