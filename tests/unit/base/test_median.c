/* Numbers in order, and medians. */
#include <stddef.h>

#include "base/median.h"
#include "unit/test_main.h"

static void test_median(void **state)
{
	(void)state;
	double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 2 }, equal[] = { 7, 7, 7, 7 }, many[3001];
	assert_true(ls_median(NULL, 0) == 0.0);
	assert_true(ls_median(odd, 1) == 9.0);
	assert_true(ls_median(odd, 3) == 5.0);
	assert_true(ls_median(even, 4) == 2.5);
	assert_true(ls_median(equal, 4) == 7.0);
	for (int i = 0; i < 3001; i++)
		many[i] = (i * 1999) % 3001; /* a permutation */
	assert_true(ls_median(many, 3001) == 1500.0);
	for (int i = 0; i < 3001; i++)
		assert_true(many[i] == i);
}

TEST_MAIN(test_median)
