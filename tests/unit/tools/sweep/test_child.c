/*
 * Child processes: their output is kept, and they end: by themselves, at the time limit, on request, also when they
 * ignore SIGTERM.
 */
#include "tools/sweep/child.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/sweep.h>

#include "base/clock.h"
#include "unit/test_main.h"

static ls_child run(const char *script, double limit_s)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	ls_child child;
	assert_int_equal(ls_child_run(&child, &(ls_child_options){ .argv = argv, .limit_s = limit_s }), LS_OK);
	return child;
}

static void test_keeps_what_is_said(void **state)
{
	(void)state;
	ls_child child = run("printf 'a\\0b'; echo gone >&2; exit 3", 20);
	assert_int_equal(child.code, 3);
	assert_int_equal(child.bytes, 3);
	assert_memory_equal(child.out, "a\0b", 4);
	assert_string_equal(child.error, "gone\n");
	assert_int_equal(child.late, 0);
	ls_child_release(&child);
}

/* More than a pipe holds, on both, and of stderr only the end is kept. */
static void test_much(void **state)
{
	(void)state;
	ls_child child = run("i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789; "
			     "echo line $i >&2; i=$((i + 1)); done",
			     60);
	assert_int_equal(child.code, 0);
	assert_int_equal(child.bytes, 4000 * 41);
	assert_non_null(strstr(child.error, "line 3999\n"));
	assert_null(strstr(child.error, "line 1000\n"));
	ls_child_release(&child);
}

static void test_reasons(void **state)
{
	(void)state;
	char why[256];
	ls_child child =
		run("echo noise >&2; echo 'lockstep bench: no such thing' >&2; echo try --help >&2; exit 2", 20);
	assert_string_equal(ls_child_reason(&child, why, sizeof(why)), "lockstep bench: no such thing");
	ls_child_release(&child);
	child = run("kill -9 $$", 20);
	assert_int_equal(child.code, 128 + SIGKILL);
	assert_non_null(strstr(ls_child_reason(&child, why, sizeof(why)), "signal 9"));
	ls_child_release(&child);
	child = run("exit 7", 20);
	assert_non_null(strstr(ls_child_reason(&child, why, sizeof(why)), "status 7"));
	ls_child_release(&child);
}

static void test_cannot_start(void **state)
{
	(void)state;
	char *argv[] = { (char *)"/nowhere/lockstep", NULL };
	ls_child child;
	assert_int_equal(ls_child_run(&child, &(ls_child_options){ .argv = argv, .limit_s = 20 }), LS_OK);
	assert_int_equal(child.code, 127);
	assert_non_null(strstr(child.error, "/nowhere/lockstep"));
	ls_child_release(&child);
}

static void test_limit(void **state)
{
	(void)state;
	char why[256];
	double begun = ls_clock_seconds();
	ls_child child = run("sleep 60 & sleep 60", 0.3);
	assert_true(ls_clock_seconds() - begun < 10);
	assert_int_equal(child.late, 1);
	assert_non_null(strstr(ls_child_reason(&child, why, sizeof(why)), "not done after"));
	ls_child_release(&child);
}

/* A command that ignores SIGTERM is killed after the grace period. */
static void test_stubborn(void **state)
{
	(void)state;
	double begun = ls_clock_seconds();
	ls_child child = run("trap '' TERM; while :; do sleep 1; done", 3); /* time for a busy shell to set the trap */
	double took = ls_clock_seconds() - begun;
	assert_true(took >= LS_CHILD_GRACE_S && took < LS_CHILD_GRACE_S + 20);
	assert_int_equal(child.code, 128 + SIGKILL);
	ls_child_release(&child);
}

static void on_tick(void *context)
{
	if (++*(int *)context == 2)
		ls_sweep_stop();
}

/* Last, because a stop cannot be undone. Commands with goes_on still run. */
static void test_stop(void **state)
{
	(void)state;
	char *argv[] = { (char *)"sleep", (char *)"60", NULL };
	int ticks = 0;
	ls_child child;
	double begun = ls_clock_seconds();
	ls_child_options options = { .argv = argv, .limit_s = 50, .tick = on_tick, .context = &ticks };
	assert_int_equal(ls_child_run(&child, &options), LS_EINTERRUPTED);
	assert_true(ls_clock_seconds() - begun < 10);
	char *quick[] = { (char *)"sh", (char *)"-c", (char *)"sleep 0.3; echo tidy", NULL };
	options = (ls_child_options){ .argv = quick, .limit_s = 20, .goes_on = 1 };
	assert_int_equal(ls_child_run(&child, &options), LS_OK);
	assert_string_equal(child.out, "tidy\n");
	ls_child_release(&child);
}

TEST_MAIN(test_keeps_what_is_said, test_much, test_reasons, test_cannot_start, test_limit, test_stubborn, test_stop)
