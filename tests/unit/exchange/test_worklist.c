/* Units are taken once each, also those that were not looked at while other buckets came and went. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "exchange/worklist.h"
#include "unit/test_main.h"

enum { BUCKETS = 5, PARTICIPANTS = 3, UNITS = 7 };

static void test_every_unit_once(void **state)
{
	ls_worklist list;
	int bucket, unit, taken[BUCKETS][UNITS] = { 0 }, last = 0;

	(void)state;
	assert_int_equal(ls_worklist_init(&list, BUCKETS, PARTICIPANTS), LS_OK);
	for (int b = 0; b < BUCKETS; b++)
		ls_worklist_publish(&list, b, UNITS);
	while (ls_worklist_take_own(&list, 1, &bucket, &unit)) {
		taken[bucket][unit]++;
		last += ls_worklist_done(&list, bucket);
	}
	assert_int_equal(last, 0);
	while (ls_worklist_take_any(&list, 2, &bucket, &unit)) {
		taken[bucket][unit]++;
		last += ls_worklist_done(&list, bucket);
	}
	assert_int_equal(last, BUCKETS);
	for (int b = 0; b < BUCKETS; b++)
		for (int u = 0; u < UNITS; u++)
			assert_int_equal(taken[b][u], 1);
	ls_worklist_release(&list);
}

/* Takes the only unit it has in its own ranges, of this bucket, and does it. */
static void do_own(ls_worklist *list, int participant, int bucket)
{
	int found, unit;
	assert_true(ls_worklist_take_own(list, participant, &found, &unit));
	assert_int_equal(found, bucket);
	assert_true(ls_worklist_done(list, bucket));
}

/* With three buckets of one unit and three participants each has one: the unit of bucket 2 is participant 0's, which is
 * busy while the others sum and apply what is theirs. A participant that looks at all ranges still finds it. */
static void test_left_behind(void **state)
{
	ls_worklist list;
	int bucket, unit;

	(void)state;
	assert_int_equal(ls_worklist_init(&list, 3, 3), LS_OK);
	for (int step = 0; step < 4; step++) {
		ls_worklist_publish(&list, 2, 1);
		for (int time = 0; time < 2; time++) {
			ls_worklist_publish(&list, 0, 1);
			ls_worklist_publish(&list, 1, 1);
			do_own(&list, 2, 0);
			do_own(&list, 1, 1);
		}
		assert_true(ls_worklist_take_any(&list, 1, &bucket, &unit));
		assert_int_equal(bucket, 2);
		assert_true(ls_worklist_done(&list, 2));
		assert_false(ls_worklist_take_any(&list, 1, &bucket, &unit));
	}
	ls_worklist_release(&list);
}

TEST_MAIN(test_every_unit_once, test_left_behind)
