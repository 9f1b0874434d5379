/*
 * How often an elastic run may be interrupted.
 */
#include "cluster/pace.h"
#include "unit/test_main.h"

static void restarts_are_counted_from_the_last_good_start(void **state)
{
	ls_pace p = { 0 };
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(ls_pace_restart(&p, 3));
	ls_pace_trained(&p, LS_PACE_GOOD_S - 1);
	assert_false(ls_pace_restart(&p, 3));
	for (int i = 0; i < 1000; i++) { /* a long run with many faults */
		ls_pace_trained(&p, LS_PACE_GOOD_S);
		assert_true(ls_pace_restart(&p, 3));
		ls_pace_trained(&p, -1);
		assert_true(ls_pace_restart(&p, 3));
	}
	assert_true(ls_pace_restart(&p, 3));
	assert_false(ls_pace_restart(&p, 3));
	assert_false(ls_pace_restart(&(ls_pace){ 0 }, 0));
}

/* A list that never stays the same: the first change counts at once, later ones less and less often. */
static void regroups_in_quick_succession(void **state)
{
	ls_pace p = { 0 };
	double now = 5, longest = 0;
	int regroups = 0;
	(void)state;
	assert_true(ls_pace_may_regroup(&p, -1));
	ls_pace_regroup(&p, now);
	assert_true(ls_pace_may_regroup(&p, 0)); /* one before was enough to join, and one more may */
	for (double trained = 0; now < 3600; now += 0.5, trained += 0.5) {
		if (!ls_pace_may_regroup(&p, trained))
			continue;
		longest = trained > longest ? trained : longest;
		ls_pace_regroup(&p, now);
		regroups++;
		trained = -1;
	}
	assert_true(longest >= LS_PACE_WAIT_MOST_S && longest < LS_PACE_WAIT_MOST_S + 1);
	assert_in_range(regroups, 50, 70);         /* not 7000 */
	assert_false(ls_pace_may_regroup(&p, -1)); /* not before it trains */
}

static void a_quiet_time_ends_the_wait(void **state)
{
	ls_pace p = { 0 };
	(void)state;
	ls_pace_regroup(&p, 100);
	ls_pace_regroup(&p, 101);
	assert_true(p.wait_s == LS_PACE_WAIT_S);
	assert_false(ls_pace_may_regroup(&p, LS_PACE_WAIT_S - 0.1));
	assert_true(ls_pace_may_regroup(&p, LS_PACE_WAIT_S));
	ls_pace_regroup(&p, 104);
	assert_true(p.wait_s == 2 * LS_PACE_WAIT_S);
	ls_pace_regroup(&p, 104 + LS_PACE_QUIET_S + 4 * LS_PACE_WAIT_S);
	assert_true(ls_pace_may_regroup(&p, -1));
}

TEST_MAIN(restarts_are_counted_from_the_last_good_start, regroups_in_quick_succession, a_quiet_time_ends_the_wait)
