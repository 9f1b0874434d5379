/*
 * Threads round as usual, whatever a library has set for the thread that starts them.
 */
#include <stddef.h>
#include <stdint.h>

#include <float.h>

#include "base/float_rules.h"
#include "base/thread.h"
#include "unit/test_main.h"

static void *halve_the_least(void *argument)
{
	volatile float *x = argument;
	*x *= 0.5f;
	return NULL;
}

/* As a library compiled with -ffast-math leaves the thread that loads it. */
static uint64_t flush_subnormals(void)
{
	uint64_t before = ls_float_rules_set();
#if defined(__x86_64__)
	ls_float_rules_restore(before | 0x8040);
#elif defined(__aarch64__)
	ls_float_rules_restore(before | 1 << 24);
#endif
	return before;
}

static void a_started_thread_rounds_as_usual(void **state)
{
	(void)state;
#if !defined(LS_FLOAT_RULES)
	skip();
#else
	volatile float here = FLT_MIN, there = FLT_MIN;
	pthread_t thread;
	uint64_t before = flush_subnormals();
	int error = ls_thread_start(&thread, halve_the_least, (void *)&there);
	here *= 0.5f; /* the starter's rules are its own */
	ls_float_rules_set();
	assert_int_equal(error, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ls_float_rules_restore(before);
	assert_true(here == 0);
	assert_true(there == FLT_MIN / 2);
#endif
}

TEST_MAIN(a_started_thread_rounds_as_usual)
