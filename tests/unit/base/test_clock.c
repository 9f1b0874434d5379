/* The clocks: time goes on while a thread sleeps, its processor time does not. */
#include <stddef.h>
#include <stdint.h>

#include <time.h>

#include "base/clock.h"
#include "unit/test_main.h"

static void sleep_is_no_work(void **state)
{
	(void)state;
	struct timespec pause = { .tv_nsec = 200000000 };
	double start = ls_clock_seconds(), work = ls_clock_thread();
	nanosleep(&pause, NULL);
	assert_true(ls_clock_seconds() - start >= 0.19);
	assert_true(ls_clock_thread() - work < 0.1);
}

static void work_is(void **state)
{
	(void)state;
	double work = ls_clock_thread(), start = ls_clock_seconds();
	while (ls_clock_thread() - work < 0.02)
		assert_true(ls_clock_seconds() - start < 60);
	assert_true(ls_clock_seconds() - start >= 0.019);
}

TEST_MAIN(sleep_is_no_work, work_is)
