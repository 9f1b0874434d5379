/* The clocks: time goes on while a thread sleeps, its processor time does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/clock.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleep_is_no_work),
		cmocka_unit_test(work_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
